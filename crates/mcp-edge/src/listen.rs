//! `subscriptions/listen`: a stream of news (SUB-01 to SUB-17).

use std::{
    collections::{BTreeMap, VecDeque},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use http::Response;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::{
    body::Body,
    feed::{Change, Topics},
    platform::{ANSWER_MARGIN, Platform, time_left},
    principal::Principal,
    provider,
    rejection::Rejection,
    respond::{self, KeepAlive},
    server::Server,
    target::{BoxFuture, BoxStream, boxed, boxed_stream},
    task::{self, record::Task},
    uri,
};

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Most changes in one piece of the stream.
const BATCH: usize = 64;

/// What a client wants to hear of, and what it will hear of (SUB-04).
#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct Filter {
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    tools_list_changed: Option<bool>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    prompts_list_changed: Option<bool>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    resources_list_changed: Option<bool>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    resource_subscriptions: Option<Vec<String>>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    task_ids: Option<Vec<String>>,
}

/// Takes an explicit null for what it is, ill-typed (SUB-01).
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Opens a stream of news. Where the front door does not stream, it is acknowledged and ends.
/// `needs_tasks` refuses a client that cannot hold tasks.
pub(crate) async fn listen(
    server: &Server,
    platform: Arc<dyn Platform>,
    principal: &Arc<Principal>,
    id: &str,
    notifications: Option<&str>,
    needs_tasks: impl Fn() -> Result<(), Rejection>,
) -> Result<Response<Body>, Rejection> {
    let ill_formed = || Rejection::params("params.notifications must be an object of filters");
    let asked = notifications.filter(|filter| filter.starts_with('{'));
    let asked: Filter =
        serde_json::from_str(asked.ok_or_else(ill_formed)?).map_err(|_| ill_formed())?;
    if asked.task_ids.is_some() {
        needs_tasks()?; // SUB-18
    }
    let limit = server.limits().listen_uris;
    let lists =
        [("resourceSubscriptions", &asked.resource_subscriptions), ("taskIds", &asked.task_ids)];
    for (name, list) in lists {
        if list.as_ref().is_some_and(|list| list.len() > limit) {
            let text = format!("params.notifications.{name} has more than {limit} entries");
            return Err(Rejection::params(text));
        }
    }
    let limit = server.limits().listen_bytes;
    if id.len() + notifications.map_or(0, str::len) > limit {
        let text = format!("the id and params.notifications have more than {limit} bytes");
        return Err(Rejection::params(text));
    }
    let place = Place::take(server).ok_or(Rejection::TooManyListeners)?;
    let mut asked = asked;
    let followed =
        followed(server, platform.as_ref(), principal, asked.task_ids.take().unwrap_or_default())
            .await;
    let mut honoured = honoured(server, platform.as_ref(), principal, asked).await;
    honoured.task_ids = Some(followed.iter().map(|(_, id)| id.clone()).collect::<Vec<_>>())
        .filter(|ids| !ids.is_empty());
    let keys = followed.iter().map(|(key, _)| key.clone());
    let feed = match topics(&honoured, principal).with_tasks(keys) {
        topics if topics.is_empty() => None,
        // Before the acknowledgement, so that nothing is missed after it.
        topics => match &server.services().feed {
            Some(feed) => Some(feed.subscribe(topics).await.map_err(Rejection::internal)?),
            None => None,
        },
    };
    let end = final_message(server, id);
    let id = RawValue::from_string(id.to_owned()).map_err(Rejection::internal)?;
    let mut first = Vec::new();
    acknowledge(&mut first, &id, &honoured);
    if !platform.can_stream() {
        respond::push_event(&mut first, &end);
        return Ok(respond::event_stream(Body::full(first)));
    }
    let life = time_left(platform.as_ref(), server.limits().listen, ANSWER_MARGIN);
    let listening = Listening {
        first: Some(first),
        feed,
        tasks: Followed::new(server, &platform, principal, followed),
        end: Some(end),
        id,
        over: [platform.sleep(life), platform.drained()],
        keep_alive: KeepAlive::default(),
        server: server.clone(),
        platform,
        _place: place,
    };
    Ok(respond::event_stream(Body::stream(boxed_stream(listening))))
}

/// The part of a filter that is served here and that the caller may see (SUB-04, A-30).
async fn honoured(
    server: &Server,
    platform: &dyn Platform,
    principal: &Principal,
    asked: Filter,
) -> Filter {
    if !server.has_change_feed() || !platform.can_stream() {
        return Filter::default();
    }
    let offers = &server.definition().offers;
    let keep = |asked: Option<bool>, served: bool| asked.filter(|asked| *asked && served);
    let mut uris = Vec::new();
    for uri in asked.resource_subscriptions.unwrap_or_default() {
        if !uris.contains(&uri) && is_known(server, principal, &uri).await {
            uris.push(uri);
        }
    }
    Filter {
        tools_list_changed: keep(asked.tools_list_changed, offers.tools),
        prompts_list_changed: keep(asked.prompts_list_changed, offers.prompts),
        resources_list_changed: keep(asked.resources_list_changed, offers.resources),
        resource_subscriptions: Some(uris).filter(|uris| !uris.is_empty()),
        task_ids: None,
    }
}

/// The tasks of a filter that are the caller's, each by its key and its id (TASK-34).
async fn followed(
    server: &Server,
    platform: &dyn Platform,
    principal: &Principal,
    ids: Vec<String>,
) -> Vec<(String, String)> {
    let mut followed = Vec::new();
    if !server.has_change_feed() || !platform.can_stream() {
        return followed;
    }
    for id in ids {
        if followed.iter().any(|(_, known)| *known == id) {
            continue;
        }
        if let Ok(found) = task::serve::find(server, platform, principal, &id).await {
            followed.push((found.record.key, id));
        }
    }
    followed
}

/// Whether there is a resource at a URI, for this caller. A provider that fails knows nothing.
async fn is_known(server: &Server, principal: &Principal, uri: &str) -> bool {
    let definition = server.definition();
    if !uri::is_uri(uri) {
        return false;
    }
    if definition.resources.get(uri).is_some()
        || definition.templates.iter().any(|entry| entry.template.matches(uri).is_some())
    {
        return true;
    }
    let provided = provider::find(definition.more.resources.as_ref(), principal, uri).await;
    provided.is_ok_and(|resource| resource.is_some())
}

fn topics(filter: &Filter, principal: &Principal) -> Topics {
    let mut topics = Topics::new(principal.tenant.clone());
    topics.tools = filter.tools_list_changed.is_some();
    topics.prompts = filter.prompts_list_changed.is_some();
    topics.resources = filter.resources_list_changed.is_some();
    topics.uris = filter.resource_subscriptions.clone().unwrap_or_default();
    topics
}

/// Appends the first message (SUB-03).
fn acknowledge(out: &mut Vec<u8>, id: &RawValue, honoured: &Filter) {
    let params = Params { notifications: Some(honoured), ..Params::new(id) };
    respond::push_notification(out, "notifications/subscriptions/acknowledged", &params);
}

/// Appends what a change is to a listener; a task is to be looked at first.
fn push_change(out: &mut Vec<u8>, id: &RawValue, change: &Change) {
    let params = Params::new(id);
    let (method, params) = match change {
        Change::Tools => ("notifications/tools/list_changed", params),
        Change::Prompts => ("notifications/prompts/list_changed", params),
        Change::Resources => ("notifications/resources/list_changed", params),
        Change::Resource(uri) => {
            ("notifications/resources/updated", Params { uri: Some(uri), ..params })
        }
        Change::Task(_) => return, // read first, see `Followed`
    };
    respond::push_notification(out, method, &params);
}

/// What the notifications of a stream have, of which each one carries the id of the listen request,
/// as it was written (SUB-06).
#[derive(Serialize)]
struct Params<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    notifications: Option<&'a Filter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    #[serde(rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Serialize)]
struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    subscription_id: &'a RawValue,
}

impl<'a> Params<'a> {
    fn new(subscription_id: &'a RawValue) -> Self {
        Self { notifications: None, uri: None, meta: Meta { subscription_id } }
    }
}

/// The response that ends the stream (SUB-08).
fn final_message(server: &Server, id: &str) -> Vec<u8> {
    let info = &server.definition().server_info;
    let comma = if info.is_empty() { "" } else { "," };
    let result =
        format!(r#"{{"resultType":"complete","_meta":{{"{SUBSCRIPTION_ID}":{id}{comma}{info}}}}}"#);
    respond::envelope(Some(id), "result", result.as_bytes())
}

/// An open listen stream.
struct Listening {
    first: Option<Vec<u8>>,
    feed: Option<BoxStream<'static, Change>>,
    tasks: Followed,
    /// Gone once it is sent.
    end: Option<Vec<u8>>,
    /// JSON, as it was written.
    id: Box<RawValue>,
    /// Either ends the stream gracefully.
    over: [BoxFuture<'static, ()>; 2],
    keep_alive: KeepAlive,
    server: Server,
    platform: Arc<dyn Platform>,
    _place: Place,
}

/// One of the places for listen streams, given back when it is dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(server: &Server) -> Option<Self> {
        let place = Self(Arc::clone(&server.definition().listeners));
        let taken = place.0.fetch_add(1, Ordering::Relaxed);
        (taken < server.limits().listeners).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Stream for Listening {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = &mut *self;
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(first.into()));
        }
        if this.end.is_none() {
            return Poll::Ready(None);
        }
        let mut out = Vec::new();
        let mut over = false;
        if let Some(feed) = &mut this.feed {
            for _ in 0..BATCH {
                match feed.as_mut().poll_next(cx) {
                    Poll::Pending => break,
                    Poll::Ready(Some(Change::Task(key))) => this.tasks.changed(&key),
                    Poll::Ready(Some(change)) => {
                        push_change(&mut out, &this.id, &change);
                    }
                    // A feed that ends is lost: the client listens again and re-lists (SUB-10).
                    Poll::Ready(None) => {
                        over = true;
                        break;
                    }
                }
            }
        }
        // Those that have just been announced.
        this.tasks.poll(cx, &mut out, &this.id);
        over |= this.over.iter_mut().any(|over| over.as_mut().poll(cx).is_ready());
        if over && let Some(end) = this.end.take() {
            respond::push_event(&mut out, &end);
        }
        let interval = this.server.limits().keep_alive;
        this.keep_alive.poll(cx, out, this.platform.as_ref(), interval).map(Some)
    }
}

/// The tasks that a stream follows: whatever is said to have changed is read, and told if it did.
struct Followed {
    server: Server,
    platform: Arc<dyn Platform>,
    principal: Arc<Principal>,
    /// By their keys.
    ids: BTreeMap<String, String>,
    /// The keys of those that are to be read, each once.
    changed: VecDeque<String>,
    reading: Option<BoxFuture<'static, Option<(u64, Task)>>>,
    /// The version of each that was told last.
    told: BTreeMap<String, u64>,
}

impl Followed {
    /// Begins with all of them: one that has ended already is told so (TASK-36).
    fn new(
        server: &Server,
        platform: &Arc<dyn Platform>,
        principal: &Arc<Principal>,
        followed: Vec<(String, String)>,
    ) -> Self {
        Self {
            server: server.clone(),
            platform: Arc::clone(platform),
            principal: Arc::clone(principal),
            changed: followed.iter().map(|(key, _)| key.clone()).collect(),
            ids: followed.into_iter().collect(),
            reading: None,
            told: BTreeMap::new(),
        }
    }

    fn changed(&mut self, key: &str) {
        if self.ids.contains_key(key) && !self.changed.iter().any(|known| known == key) {
            self.changed.push_back(key.to_owned());
        }
    }

    /// Reads what changed, one after the other, and appends the news (TASK-34).
    fn poll(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>, subscription_id: &RawValue) {
        loop {
            let reading = match &mut self.reading {
                Some(reading) => reading,
                None => {
                    let Some(key) = self.changed.pop_front() else { return };
                    let Some(id) = self.ids.get(&key).cloned() else { continue };
                    let (server, platform) = (self.server.clone(), Arc::clone(&self.platform));
                    let principal = Arc::clone(&self.principal);
                    self.reading.insert(boxed(async move {
                        let platform = platform.as_ref();
                        let found = task::serve::find(&server, platform, &principal, &id).await;
                        found.ok().map(|found| (found.record.version, found.task))
                    }))
                }
            };
            let Poll::Ready(task) = reading.as_mut().poll(cx) else { return };
            self.reading = None;
            let Some((version, task)) = task else { continue };
            if self.told.insert(task.id.clone(), version) == Some(version) {
                continue;
            }
            let news = task::wire::news(&task, &self.server, Meta { subscription_id });
            respond::push_notification(out, "notifications/tasks", &news);
        }
    }
}
