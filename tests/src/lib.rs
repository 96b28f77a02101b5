//! What every platform must do alike: one contract suite, and the server that it is run against.
//!
//! A platform's test file says how to reach [`server()`] there, and [`contract_suite!`] makes a test
//! of each function of [`contract`].

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "all of it is test code")]

#[allow(missing_docs, reason = "the names of its functions say what they state")]
pub mod contract;
mod counter;
mod edit;
mod server;
mod spec;
mod tokens;

pub use {
    counter::Counter,
    edit::{edit, header},
    server::server,
    spec::spec_folder,
    tokens::Tokens,
};

/// Makes a `tokio` test of each part of the contract. `$client` is an async function that returns a
/// [`mcp_edge_test::Client`] of [`server()`] on the platform under test.
#[macro_export]
macro_rules! contract_suite {
    ($client:path) => {
        $crate::contract_suite! { @tests $client:
            exchange::http_02_foreign_origins_are_refused
            exchange::http_03_an_absent_origin_passes_and_null_does_not
            exchange::http_04_foreign_hosts_are_refused
            exchange::http_07_other_methods_are_answered_405_with_allow
            exchange::http_08_sessions_and_event_ids_are_ignored
            exchange::http_11_notifications_are_accepted_without_a_body
            exchange::http_14_content_types
            exchange::http_15_accept
            exchange::http_16_nothing_is_stored
            exchange::other_paths_are_404
            exchange::the_body_limit_is_413
            exchange::too_many_headers_are_431
            exchange::healthz_says_ok
            ladder::base_02_batches_and_responses_are_refused
            ladder::base_05_ids_are_echoed_as_they_were_written
            ladder::err_06_unknown_and_removed_methods_are_404
            ladder::hdr_01_to_13_mirrored_headers
            ladder::hdr_14_repeated_headers_are_refused
            ladder::hdr_16_a_missing_name_is_a_matter_of_params
            ladder::meta_03_and_04_required_metadata
            ladder::meta_05_client_info_is_optional
            ladder::param_10_to_18_mirrored_arguments
            ladder::unreadable_bodies_are_parse_errors
            ladder::ver_02_versions
            ladder::ver_07_initialize_is_told_the_versions
            ladder::log_06_unknown_levels_are_refused
            features::disc_03_discover
            features::tool_calls
            features::tool_14_and_15_what_goes_wrong_with_a_call
            features::res_reads
            features::res_07_missing_resources
            features::prompts
            features::completions
            features::page_01_lists_come_in_pages
            features::page_04_foreign_cursors_are_refused
            features::cache_01_hints
            features::questions_over_rounds
            features::mrtr_18_altered_states_are_refused
            features::mrtr_26_a_read_with_answers_is_not_cached
            streams::sse_12_json_unless_something_was_emitted
            streams::s7_sse_for_those_who_take_nothing_else
            streams::s9_events_are_dropped_where_only_json_is_taken
            streams::progress_and_logs_come_before_the_result
            streams::log_03_no_logs_without_a_level
            streams::sse_13_concurrent_streams_are_independent
            streams::sub_03_listen_is_acknowledged_first
            streams::sub_05_and_06_news_is_filtered_and_tagged
            streams::sub_01_ill_formed_filters_are_refused
            streams::errors_after_the_first_event_come_as_the_last_one
            tasks::task_01_and_06_tasks_are_advertised_as_an_extension_alone
            tasks::task_02_no_task_without_the_declaration_of_this_request
            tasks::task_04_a_tool_that_requires_a_task_is_refused_without_the_declaration
            tasks::task_06_a_legacy_task_member_is_ignored
            tasks::task_09_and_13_a_task_begins_flat_and_working
            tasks::task_10_a_task_is_there_at_once
            tasks::task_11_questions_before_a_task_are_not_those_of_the_task
            tasks::task_15_to_22_a_task_shows_what_belongs_to_its_state
            tasks::task_19_and_30_questions_are_answered_one_by_one
            tasks::task_25_one_answer_to_every_id_that_names_nothing
            tasks::task_28_and_31_answers_that_are_none_are_refused
            tasks::task_32_cancelling_is_acknowledged_whatever_the_state
            tasks::task_33_the_declaration_is_asked_for_before_the_id_is_looked_up
            tasks::task_34_to_36_a_stream_tells_of_the_tasks_that_it_asks_for
            tasks::task_35_no_progress_and_no_logs_of_tasks
            tasks::task_39_removed_methods_are_unknown
            tasks::task_40_and_hdr_06_the_header_names_the_task
            tasks::task_42_and_26_nothing_is_stored_and_nothing_said_of_caches
            tasks::canc_09_a_task_outlives_its_connections
            fixtures::every_fixture_file_is_answered_as_it_says
        }
    };
    (@tests $client:path: $($module:ident::$name:ident)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                $crate::contract::$module::$name(&$client().await).await;
            }
        )*
    };
}

/// The Rust of the documentation compiles: `cargo test --doc` runs it.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../README.md")]
    mod readme {}
    #[doc = include_str!("../../DESIGN.md")]
    mod design {}
    #[doc = include_str!("../../docs/what-runs-again.md")]
    mod what_runs_again {}
    #[doc = include_str!("../../docs/tasks.md")]
    mod tasks {}
}
