//! The methods of the revision.

use crate::{catalogue::List, server::Server};

/// A method that a server may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    CallTool,
    CancelTask,
    Complete,
    Discover,
    GetPrompt,
    GetTask,
    List(List),
    Listen,
    ReadResource,
    UpdateTask,
}

impl Method {
    /// The method of this name; removed ones are unknown (ERR-06).
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "completion/complete" => Self::Complete,
            "prompts/get" => Self::GetPrompt,
            "prompts/list" => Self::List(List::Prompts),
            "resources/list" => Self::List(List::Resources),
            "resources/read" => Self::ReadResource,
            "resources/templates/list" => Self::List(List::ResourceTemplates),
            "server/discover" => Self::Discover,
            "subscriptions/listen" => Self::Listen,
            "tasks/cancel" => Self::CancelTask,
            "tasks/get" => Self::GetTask,
            "tasks/update" => Self::UpdateTask,
            "tools/call" => Self::CallTool,
            "tools/list" => Self::List(List::Tools),
            _ => return None,
        })
    }

    /// Whether a handler answers it, which has more to check first.
    pub(crate) const fn runs_a_handler(self) -> bool {
        matches!(self, Self::CallTool | Self::Complete | Self::GetPrompt | Self::ReadResource)
    }

    /// Whether it belongs to the tasks extension.
    pub(crate) const fn is_of_tasks(self) -> bool {
        matches!(self, Self::CancelTask | Self::GetTask | Self::UpdateTask)
    }

    /// Whether its capability is advertised (ERR-07, DISC-08).
    pub(crate) fn is_served_by(self, server: &Server) -> bool {
        let offers = &server.definition().offers;
        match self {
            Self::Discover | Self::Listen => true,
            Self::CallTool | Self::List(List::Tools) => offers.tools,
            Self::GetPrompt | Self::List(List::Prompts) => offers.prompts,
            Self::ReadResource | Self::List(List::Resources | List::ResourceTemplates) => {
                offers.resources
            }
            Self::Complete => offers.completions,
            Self::CancelTask | Self::GetTask | Self::UpdateTask => server.offers_tasks(),
        }
    }
}
