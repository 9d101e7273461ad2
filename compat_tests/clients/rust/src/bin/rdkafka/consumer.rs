//! BaseConsumer.

use std::time::{Duration, Instant};

use pipe::{Answer, Argument, Failure, encoded};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _, ConsumerGroupMetadata};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Offset, Timestamp};
use serde_json::{Value, json};

use crate::{TIMEOUT, config, failure};

/// The client tells of a broker that is away, and goes on.
const PASSING: [RDKafkaErrorCode; 3] =
    [RDKafkaErrorCode::AllBrokersDown, RDKafkaErrorCode::BrokerTransportFailure, RDKafkaErrorCode::Resolve];

pub struct Consumer {
    consumer: BaseConsumer,
}

impl Consumer {
    pub fn new(bootstrap: &str, settings: &Value) -> Result<Consumer, Failure> {
        let group_id = settings["group_id"].as_str();
        let reset = settings["auto_offset_reset"].text();
        let isolation = if settings["read_committed"].flag() { "read_committed" } else { "read_uncommitted" };
        let mut config = config(bootstrap);
        config
            .set("client.id", settings["client_id"].text())
            // The client insists on a group id, also where no group is used.
            .set("group.id", group_id.unwrap_or("unused"))
            .set("auto.offset.reset", if reset == "none" { "error" } else { reset })
            .set("enable.auto.commit", (settings["auto_commit"].flag() && group_id.is_some()).to_string())
            .set("auto.commit.interval.ms", settings["auto_commit_interval_ms"].to_string())
            .set("fetch.wait.max.ms", settings["fetch_max_wait_ms"].to_string())
            .set("fetch.min.bytes", settings["fetch_min_bytes"].to_string())
            .set("fetch.max.bytes", settings["fetch_max_bytes"].to_string())
            .set("max.partition.fetch.bytes", settings["max_partition_fetch_bytes"].to_string())
            .set("message.max.bytes", settings["fetch_max_bytes"].number().min(1_000_000).to_string())
            .set("session.timeout.ms", settings["session_timeout_ms"].to_string())
            .set("heartbeat.interval.ms", settings["heartbeat_interval_ms"].to_string())
            .set("isolation.level", isolation)
            .set("topic.metadata.refresh.interval.ms", "1000")
            .set("socket.timeout.ms", "60000")
            .set("fetch.queue.backoff.ms", "10")
            .set("fetch.error.backoff.ms", "50");
        if let Some(id) = settings["group_instance_id"].as_str() {
            config.set("group.instance.id", id);
        }
        Ok(Consumer { consumer: config.create().map_err(failure)? })
    }

    pub fn group(&self) -> ConsumerGroupMetadata {
        self.consumer.group_metadata().expect("a group")
    }

    pub fn call(&mut self, method: &str, arguments: &Value) -> Answer {
        match method {
            "assign" => self.assign(arguments),
            "subscribe" => {
                let topics: Vec<&str> = arguments["topics"].list().iter().map(Argument::text).collect();
                self.consumer.subscribe(&topics).map_err(failure).map(|()| Value::Null)
            }
            "subscribe_pattern" => {
                self.consumer.subscribe(&[arguments["pattern"].text()]).map_err(failure).map(|()| Value::Null)
            }
            "poll" => self.poll(Duration::from_millis(arguments["timeout_ms"].number() as u64)),
            "assignment" => {
                let owned = self.consumer.assignment().map_err(failure)?;
                Ok(owned.elements().iter().map(|each| json!([each.topic(), each.partition()])).collect())
            }
            "commit" => self.commit(arguments),
            _ => self.ask(method, arguments, arguments["where"].place()),
        }
    }

    /// The methods about one partition.
    fn ask(&self, method: &str, arguments: &Value, (topic, partition): (&str, i32)) -> Answer {
        let mut wanted = TopicPartitionList::new();
        wanted.add_partition(topic, partition);
        match method {
            "seek" => self.seek(topic, partition, arguments["offset"].number()),
            "position" => {
                let positions = self.consumer.position().map_err(failure)?;
                let at = positions.find_partition(topic, partition).map(|found| found.offset());
                Ok(json!(at.and_then(Offset::to_raw)))
            }
            "committed" => {
                let committed = self.consumer.committed_offsets(wanted, TIMEOUT).map_err(failure)?;
                let found = committed.find_partition(topic, partition).expect("what was asked for");
                Ok(offset(found.offset()).map_or(Value::Null, |at| json!([at, found.metadata()])))
            }
            "watermarks" => {
                let (low, high) = self.consumer.fetch_watermarks(topic, partition, TIMEOUT).map_err(failure)?;
                Ok(json!([low, high]))
            }
            "offset_for_time" => {
                let time = Offset::Offset(arguments["timestamp_ms"].number());
                wanted.set_partition_offset(topic, partition, time).map_err(failure)?;
                let found = self.consumer.offsets_for_times(wanted, TIMEOUT).map_err(failure)?;
                Ok(json!(found.find_partition(topic, partition).and_then(|found| offset(found.offset()))))
            }
            _ => panic!("{method}"),
        }
    }

    fn assign(&self, arguments: &Value) -> Answer {
        let mut partitions = TopicPartitionList::new();
        for start in arguments["starts"].list() {
            let (topic, partition) = start.place();
            let from = match start[2].as_str() {
                Some("beginning") => Offset::Beginning,
                Some(_) => Offset::End,
                None => Offset::Offset(start[2].number()),
            };
            partitions.add_partition_offset(topic, partition, from).map_err(failure)?;
        }
        self.consumer.assign(&partitions).map_err(failure).map(|()| Value::Null)
    }

    fn poll(&self, timeout: Duration) -> Answer {
        let mut messages = Vec::new();
        let mut next = self.consumer.poll(timeout);
        while let Some(polled) = next {
            match polled {
                Ok(record) => messages.push(message(&record)),
                Err(KafkaError::MessageConsumption(code)) if PASSING.contains(&code) => {}
                Err(error) => return Err(failure(error)),
            }
            next = if messages.len() < 1000 { self.consumer.poll(Duration::ZERO) } else { None };
        }
        Ok(json!(messages))
    }

    fn seek(&self, topic: &str, partition: i32, to: i64) -> Answer {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match self.consumer.seek(topic, partition, Offset::Offset(to), TIMEOUT) {
                // The partition is not being fetched yet.
                Err(KafkaError::Seek(_)) if Instant::now() < deadline => {
                    self.consumer.poll(Duration::from_millis(50));
                }
                sought => return sought.map_err(failure).map(|()| Value::Null),
            }
        }
    }

    fn commit(&self, arguments: &Value) -> Answer {
        let mut offsets = TopicPartitionList::new();
        for each in arguments["offsets"].list() {
            let (topic, partition) = each.place();
            let mut wanted = offsets.add_partition(topic, partition);
            wanted.set_offset(Offset::Offset(each[2].number())).map_err(failure)?;
            wanted.set_metadata(each[3].text());
        }
        self.consumer.commit(&offsets, CommitMode::Sync).map_err(failure).map(|()| Value::Null)
    }
}

/// An offset, if it is one.
pub fn offset(found: Offset) -> Option<i64> {
    found.to_raw().filter(|offset| *offset >= 0)
}

fn message(record: &BorrowedMessage<'_>) -> Value {
    let (timestamp, kind) = match record.timestamp() {
        Timestamp::NotAvailable => (-1, -1),
        Timestamp::CreateTime(time) => (time, 0),
        Timestamp::LogAppendTime(time) => (time, 1),
    };
    let headers: Vec<Value> = record
        .headers()
        .into_iter()
        .flat_map(|headers| headers.iter())
        .map(|header| json!([header.key, encoded(header.value)]))
        .collect();
    json!([
        [record.topic(), record.partition(), record.offset(), timestamp, kind],
        [encoded(record.key()), encoded(record.payload())],
        headers
    ])
}
