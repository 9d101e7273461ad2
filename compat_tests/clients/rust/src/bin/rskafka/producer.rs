//! PartitionClient::produce. It takes a batch, so what was sent goes out, batch by partition, with flush.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use pipe::{Answer, Argument, Failure, wait};
use rskafka::chrono::DateTime;
use rskafka::client::partition::{Compression, UnknownTopicHandling};
use rskafka::record::Record;
use serde_json::{Value, json};

use crate::{Connection, failure};

pub struct Producer {
    compression: Compression,
    connection: Connection,
    queued: Vec<((String, i32), Record)>,
}

impl Producer {
    pub fn new(bootstrap: &str, settings: &Value) -> Result<Producer, Failure> {
        let patience = Duration::from_millis(settings["delivery_timeout_ms"].number() as u64);
        let compression = match settings["compression"].text() {
            "none" => Compression::NoCompression,
            "gzip" => Compression::Gzip,
            "snappy" => Compression::Snappy,
            "lz4" => Compression::Lz4,
            "zstd" => Compression::Zstd,
            other => panic!("{other}"),
        };
        // The first metadata of a topic that they create may not know it yet.
        let connection = Connection::new(bootstrap, "ottla-compat", patience, UnknownTopicHandling::Retry)?;
        Ok(Producer { compression, connection, queued: Vec::new() })
    }

    pub fn call(&mut self, method: &str, arguments: &Value) -> Answer {
        match method {
            "send" => self.queued.push(record(arguments)),
            "flush" => return self.flush(),
            _ => panic!("{method}"),
        }
        Ok(Value::Null)
    }

    fn flush(&mut self) -> Answer {
        let mut batches: BTreeMap<(String, i32), (Vec<usize>, Vec<Record>)> = BTreeMap::new();
        let queued = std::mem::take(&mut self.queued);
        let mut deliveries = vec![Value::Null; queued.len()];
        for (number, (place, record)) in queued.into_iter().enumerate() {
            let batch = batches.entry(place).or_default();
            batch.0.push(number);
            batch.1.push(record);
        }
        for ((topic, partition), (numbers, records)) in batches {
            let client = self.connection.partition((&topic, partition))?;
            let offsets = wait(client.produce(records, self.compression)).map_err(failure)?;
            for (number, offset) in numbers.into_iter().zip(offsets) {
                deliveries[number] = json!([topic, partition, offset]);
            }
        }
        Ok(json!(deliveries))
    }
}

fn record(arguments: &Value) -> ((String, i32), Record) {
    let headers = arguments["headers"].list().iter();
    let now = || SystemTime::UNIX_EPOCH.elapsed().expect("a clock that is right").as_millis() as i64;
    let timestamp = arguments["timestamp_ms"].as_i64().unwrap_or_else(now);
    let record = Record {
        key: arguments["key"].bytes(),
        value: arguments["value"].bytes(),
        headers: headers.map(|each| (each[0].text().to_string(), each[1].bytes().unwrap_or_default())).collect(),
        timestamp: DateTime::from_timestamp_millis(timestamp).expect("a time"),
    };
    ((arguments["topic"].text().to_string(), arguments["partition"].number() as i32), record)
}
