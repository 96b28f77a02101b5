//! Reading event streams, as the WHATWG specification says.

use std::borrow::Cow;

/// One event of a stream (`text/event-stream`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The `event` field; `message` where the stream names none.
    pub event: String,
    /// The `data` lines, joined by line feeds.
    pub data: String,
    /// The newest `id` of the stream, if there was one. MCP streams have none (SSE-08).
    pub id: Option<String>,
}

/// Turns pieces of a stream into events.
///
/// Lines end in LF, CR or CR LF, also across pieces. A byte order mark at the start is dropped,
/// comments and unknown fields are skipped, and an event without a blank line behind it is lost.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    /// The last byte was a CR, so an LF now is part of the same line end.
    after_cr: bool,
    past_first_line: bool,
    event: String,
    data: String,
    has_data: bool,
    id: Option<String>,
    /// Something was not UTF-8, and replaced.
    not_utf8: bool,
}

impl Parser {
    /// Takes a piece; returns the events that it completes.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for &byte in piece {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
        }
        events
    }

    /// Whether everything so far was UTF-8.
    pub(crate) const fn is_utf8(&self) -> bool {
        !self.not_utf8
    }

    fn end_line(&mut self) -> Option<Event> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        self.not_utf8 |= matches!(line, Cow::Owned(_));
        let line = match line.strip_prefix('\u{feff}') {
            Some(rest) if !self.past_first_line => rest,
            _ => &line,
        };
        self.past_first_line = true;
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // A comment has an empty field name; `retry` is for reconnecting, which MCP has not.
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        let event = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        let event = if event.is_empty() { "message".to_owned() } else { event };
        std::mem::take(&mut self.has_data).then(|| Event { event, data, id: self.id.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(stream: &[u8]) -> Vec<(String, String)> {
        let whole: Vec<_> =
            Parser::default().feed(stream).into_iter().map(|e| (e.event, e.data)).collect();
        // However it is cut, it says the same.
        for cut in 0..=stream.len() {
            let mut parser = Parser::default();
            let mut events = parser.feed(&stream[..cut]);
            events.extend(parser.feed(&stream[cut..]));
            let events: Vec<_> = events.into_iter().map(|e| (e.event, e.data)).collect();
            assert_eq!(events, whole, "cut at {cut}");
        }
        whole
    }

    fn messages(stream: &[u8]) -> Vec<String> {
        parse(stream).into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn an_event_is_fields_and_a_blank_line() {
        let event = |name: &str, data: &str| [(name.to_owned(), data.to_owned())];
        assert_eq!(parse(b"event: message\ndata: {}\n\n"), event("message", "{}"));
        assert_eq!(parse(b"data: {}\n\n"), event("message", "{}"));
        assert_eq!(parse(b"event: ping\ndata:1\n\n"), event("ping", "1"));
    }

    #[test]
    fn lines_end_in_lf_cr_or_both() {
        assert_eq!(messages(b"data: 1\r\n\r\ndata: 2\r\rdata: 3\n\n"), ["1", "2", "3"]);
        assert_eq!(messages(b"data: 1\r\n\ndata: 2\n\r\n"), ["1", "2"]);
    }

    #[test]
    fn data_lines_are_joined() {
        assert_eq!(messages(b"data: a\ndata:b\ndata:  c\n\n"), ["a\nb\n c"]);
        assert_eq!(messages(b"data\n\n"), [""]);
        assert_eq!(messages(b"data\ndata\n\n"), ["\n"]);
    }

    #[test]
    fn comments_and_unknown_fields_are_skipped() {
        assert_eq!(messages(b": keep-alive\n\ndata: 1\nfoo: bar\n: x\nretry: 9\n\n"), ["1"]);
        assert!(messages(b"event: message\n\n").is_empty(), "an event without data is none");
    }

    #[test]
    fn an_unfinished_event_is_lost() {
        assert!(messages(b"data: 1\n").is_empty());
        assert!(messages(b"data: 1").is_empty());
    }

    #[test]
    fn a_byte_order_mark_is_dropped_at_the_start_alone() {
        assert_eq!(messages(b"\xef\xbb\xbfdata: 1\n\n\xef\xbb\xbfdata: 2\n\n"), ["1"]);
    }

    #[test]
    fn ids_last_and_the_event_name_does_not() {
        let mut parser = Parser::default();
        let events = parser.feed(b"id: 7\nevent: e\ndata: 1\n\ndata: 2\n\nid: a\0b\ndata: 3\n\n");
        let ids: Vec<_> = events.iter().map(|event| event.id.as_deref()).collect();
        assert_eq!(ids, [Some("7"), Some("7"), Some("7")]);
        assert_eq!(events[1].event, "message");
    }

    #[test]
    fn characters_may_be_cut_in_two() {
        assert_eq!(messages("data: é😀\n\n".as_bytes()), ["é😀"]);
    }

    #[test]
    fn what_is_not_utf_8_is_replaced_and_noticed() {
        assert_eq!(messages(b"data: \xff\n\n"), ["\u{fffd}"]);
        let mut parser = Parser::default();
        parser.feed("data: \u{fffd}\n\n".as_bytes());
        assert!(parser.is_utf8());
        parser.feed(b": \xff\n");
        assert!(!parser.is_utf8());
    }
}
