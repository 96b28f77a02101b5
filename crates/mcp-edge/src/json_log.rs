//! A `tracing` subscriber that writes JSON lines, with a clock that the platform gives.

use std::{
    cell::RefCell,
    collections::HashMap,
    fmt::{self, Debug},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Map, Value, json};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::platform::Timestamp;

/// A `tracing` subscriber that writes each event as one line of JSON: `time` (milliseconds since the
/// Unix epoch), `level`, `target`, `message`, the event's fields, and `spans` with theirs.
///
/// It needs no clock of the system and no output of its own, so it runs where there are none, too.
///
/// ```
/// use mcp_edge::{JsonLog, Timestamp};
///
/// let log = JsonLog::new(tracing::Level::INFO, || Timestamp::from_millis(7), |line| {
///     eprintln!("{line}");
/// });
/// tracing::subscriber::with_default(log, || tracing::info!(port = 3000, "listening"));
/// ```
pub struct JsonLog {
    lowest: Level,
    clock: Box<dyn Clock>,
    sink: Box<dyn Sink>,
    spans: Mutex<Spans>,
}

/// Tells the time.
trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}

impl<F: Fn() -> Timestamp + Send + Sync> Clock for F {
    fn now(&self) -> Timestamp {
        self()
    }
}

/// Takes a line.
trait Sink: Send + Sync {
    fn write(&self, line: &str);
}

impl<F: Fn(&str) + Send + Sync> Sink for F {
    fn write(&self, line: &str) {
        self(line);
    }
}

/// The spans that are open.
#[derive(Default)]
struct Spans {
    last_id: u64,
    open: HashMap<u64, Open>,
}

struct Open {
    metadata: &'static Metadata<'static>,
    fields: Arc<Map<String, Value>>,
    parent: Option<u64>,
    references: usize,
}

impl JsonLog {
    /// Writes events of level `lowest` and above to `sink`, a line at a time and without its end.
    pub fn new(
        lowest: Level,
        clock: impl Fn() -> Timestamp + Send + Sync + 'static,
        sink: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let (clock, sink) = (Box::new(clock), Box::new(sink));
        Self { lowest, clock, sink, spans: Mutex::default() }
    }

    fn spans(&self) -> MutexGuard<'_, Spans> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The span that this thread is in.
    fn current() -> Option<u64> {
        ENTERED.with_borrow(|entered| entered.last().copied())
    }
}

thread_local! {
    /// The spans that this thread is in, the innermost last.
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

impl Subscriber for JsonLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.lowest
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(self.lowest.into())
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        let parent = match span.parent() {
            Some(parent) => Some(parent.into_u64()),
            None if span.is_contextual() => Self::current(),
            None => None,
        };
        let mut spans = self.spans();
        spans.last_id += 1;
        let id = spans.last_id;
        let fields = Arc::new(fields.0);
        let metadata = span.metadata();
        spans.open.insert(id, Open { metadata, fields, parent, references: 1 });
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        if let Some(open) = self.spans().open.get_mut(&span.into_u64()) {
            Arc::make_mut(&mut open.fields).extend(fields.0);
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut chain = Vec::new();
        {
            let spans = self.spans();
            let mut next = event.parent().map(Id::into_u64).or_else(Self::current);
            while let Some(open) = next.and_then(|id| spans.open.get(&id)) {
                chain.push((open.metadata.name(), Arc::clone(&open.fields)));
                next = open.parent;
            }
        }
        let spans: Vec<Value> = chain
            .into_iter()
            .rev()
            .map(|(name, fields)| {
                let mut span = Map::from_iter([("span".to_owned(), json!(name))]);
                span.extend(Map::clone(&fields));
                Value::Object(span)
            })
            .collect();
        let mut line = Map::from_iter([
            ("time".to_owned(), json!(self.clock.now().as_millis())),
            ("level".to_owned(), json!(event.metadata().level().as_str())),
            ("target".to_owned(), json!(event.metadata().target())),
        ]);
        line.extend(fields.0);
        if !spans.is_empty() {
            line.insert("spans".to_owned(), Value::Array(spans));
        }
        self.sink.write(&Value::Object(line).to_string());
    }

    fn enter(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| {
            if let Some(at) = entered.iter().rposition(|id| *id == span.into_u64()) {
                entered.remove(at);
            }
        });
    }

    fn clone_span(&self, span: &Id) -> Id {
        if let Some(open) = self.spans().open.get_mut(&span.into_u64()) {
            open.references += 1;
        }
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let mut spans = self.spans();
        let Some(open) = spans.open.get_mut(&span.into_u64()) else { return false };
        open.references -= 1;
        if open.references > 0 {
            return false;
        }
        spans.open.remove(&span.into_u64());
        true
    }
}

impl Debug for JsonLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonLog").field("lowest", &self.lowest).finish_non_exhaustive()
    }
}

/// The fields of an event or span, as JSON.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that `log` leads to.
    fn lines(log: impl FnOnce()) -> Vec<Value> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&lines);
        let clock = || Timestamp::from_millis(7);
        let subscriber = JsonLog::new(Level::INFO, clock, move |line: &str| {
            written.lock().unwrap().push(serde_json::from_str(line).unwrap());
        });
        tracing::subscriber::with_default(subscriber, log);
        lines.lock().unwrap().clone()
    }

    #[test]
    fn an_event_is_one_line_with_its_fields_and_spans() {
        let lines = lines(|| {
            let outer = tracing::info_span!("outer", a = 1, late = tracing::field::Empty);
            outer.record("late", true);
            outer.in_scope(|| {
                let inner = tracing::info_span!("inner", b = "x\ny").entered();
                tracing::warn!(c = 1.5, "it {}", "happened");
                drop(inner);
                tracing::debug!("below the level");
            });
            tracing::info!(parent: &outer, "from outside");
            tracing::info!("alone");
        });
        let target = "mcp_edge::json_log::tests";
        let outer = json!({ "span": "outer", "a": 1, "late": true });
        assert_eq!(
            lines,
            [
                json!({ "time": 7, "level": "WARN", "target": target, "message": "it happened",
                    "c": 1.5, "spans": [outer, { "span": "inner", "b": "x\ny" }] }),
                json!({ "time": 7, "level": "INFO", "target": target,
                    "message": "from outside", "spans": [outer] }),
                json!({ "time": 7, "level": "INFO", "target": target, "message": "alone" }),
            ]
        );
    }

    #[test]
    fn spans_that_closed_are_forgotten() {
        let log = Arc::new(JsonLog::new(Level::INFO, Timestamp::default, |_: &str| {}));
        tracing::subscriber::with_default(Arc::clone(&log), || {
            for _ in 0..100 {
                let span = tracing::info_span!("span");
                let _clone = span.clone();
                span.in_scope(|| tracing::info!("inside"));
            }
        });
        assert!(log.spans().open.is_empty());
    }
}
