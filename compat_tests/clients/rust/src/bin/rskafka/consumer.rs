//! StreamConsumer, one to a partition, each of which has its task.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures::StreamExt;
use pipe::{Answer, Argument, Failure, encoded, runtime, wait};
use rskafka::chrono::DateTime;
use rskafka::client::consumer::{StartOffset, StreamConsumerBuilder};
use rskafka::client::error::Result;
use rskafka::client::partition::{OffsetAt, UnknownTopicHandling};
use rskafka::record::RecordAndOffset;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::{Connection, failure};

type Place = (String, i32);

/// What a stream has got, with the number of the stream.
struct Item {
    place: Place,
    stream: usize,
    got: Result<RecordAndOffset>,
}

struct Reading {
    stream: usize,
    task: JoinHandle<()>,
    position: i64,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub struct Consumer {
    bytes: (i32, i32),
    connection: Connection,
    items: UnboundedReceiver<Item>,
    max_wait_ms: i32,
    reading: HashMap<Place, Reading>,
    sender: UnboundedSender<Item>,
    streams: usize,
}

impl Consumer {
    pub fn new(bootstrap: &str, settings: &Value) -> std::result::Result<Consumer, Failure> {
        let number = |name: &str| settings[name].number() as i32;
        let (sender, items) = unbounded_channel();
        Ok(Consumer {
            // A stream is of one partition, so the smaller of the two limits holds.
            bytes: (number("fetch_min_bytes"), number("fetch_max_bytes").min(number("max_partition_fetch_bytes"))),
            connection: Connection::new(
                bootstrap,
                settings["client_id"].text(),
                Duration::from_secs(60),
                UnknownTopicHandling::Error,
            )?,
            items,
            max_wait_ms: number("fetch_max_wait_ms"),
            reading: HashMap::new(),
            sender,
            streams: 0,
        })
    }

    pub fn call(&mut self, method: &str, arguments: &Value) -> Answer {
        match method {
            "assign" => {
                self.reading.clear();
                for start in arguments["starts"].list() {
                    self.read(start.place(), start_offset(&start[2]))?;
                }
                Ok(Value::Null)
            }
            "poll" => self.poll(Duration::from_millis(arguments["timeout_ms"].number() as u64)),
            "assignment" => Ok(self.reading.keys().map(|place| json!(place)).collect()),
            _ => self.ask(method, arguments, arguments["where"].place()),
        }
    }

    /// The methods about one partition.
    fn ask(&mut self, method: &str, arguments: &Value, place: (&str, i32)) -> Answer {
        match method {
            "seek" => self.read(place, start_offset(&arguments["offset"])).map(|()| Value::Null),
            "position" => Ok(json!(self.reading[&(place.0.to_string(), place.1)].position)),
            "watermarks" => Ok(json!([self.offset(place, OffsetAt::Earliest)?, self.offset(place, OffsetAt::Latest)?])),
            "offset_for_time" => {
                let time = DateTime::from_timestamp_millis(arguments["timestamp_ms"].number()).expect("a time");
                let found = self.offset(place, OffsetAt::Timestamp(time))?;
                Ok(if found < 0 { Value::Null } else { json!(found) })
            }
            _ => panic!("{method}"),
        }
    }

    fn offset(&mut self, place: (&str, i32), at: OffsetAt) -> std::result::Result<i64, Failure> {
        let client = self.connection.partition(place)?;
        wait(client.get_offset(at)).map_err(failure)
    }

    /// Begin a stream, in the place of the partition's former one.
    fn read(&mut self, place: (&str, i32), start: StartOffset) -> std::result::Result<(), Failure> {
        let client = self.connection.partition(place)?;
        let mut records = StreamConsumerBuilder::new(client, start)
            .with_min_batch_size(self.bytes.0)
            .with_max_batch_size(self.bytes.1)
            .with_max_wait_ms(self.max_wait_ms)
            .build();
        self.streams += 1;
        let (stream, sender, place) = (self.streams, self.sender.clone(), (place.0.to_string(), place.1));
        let of = place.clone();
        let task = runtime().spawn(async move {
            while let Some(got) = records.next().await {
                let item = Item { place: of.clone(), stream, got: got.map(|(record, _)| record) };
                if sender.send(item).is_err() {
                    return;
                }
            }
        });
        let position = if let StartOffset::At(offset) = start { offset } else { -1 };
        self.reading.insert(place, Reading { stream, task, position });
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Answer {
        let deadline = Instant::now() + timeout;
        let mut messages = Vec::new();
        loop {
            let left =
                if messages.is_empty() { deadline.saturating_duration_since(Instant::now()) } else { Duration::ZERO };
            let received = wait(async { tokio::time::timeout(left, self.items.recv()).await });
            let Ok(Some(item)) = received else { return Ok(json!(messages)) };
            match self.reading.get_mut(&item.place) {
                Some(reading) if reading.stream == item.stream => {
                    let found = item.got.map_err(failure)?;
                    reading.position = found.offset + 1;
                    messages.push(message(&item.place, found));
                }
                _ => {}
            }
        }
    }
}

fn start_offset(start: &Value) -> StartOffset {
    match start.as_str() {
        Some("beginning") => StartOffset::Earliest,
        Some(_) => StartOffset::Latest,
        None => StartOffset::At(start.number()),
    }
}

/// The client doesn't tell the type of a timestamp.
fn message((topic, partition): &Place, RecordAndOffset { record, offset }: RecordAndOffset) -> Value {
    let headers: Vec<Value> =
        record.headers.iter().map(|(name, content)| json!([name, encoded(Some(content))])).collect();
    json!([
        [topic, partition, offset, record.timestamp.timestamp_millis(), -1],
        [encoded(record.key.as_deref()), encoded(record.value.as_deref())],
        headers
    ])
}
