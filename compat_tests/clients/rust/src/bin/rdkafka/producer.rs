//! FutureProducer.

use std::time::{Duration, Instant};

use pipe::{Answer, Argument, Failure, wait};
use rdkafka::Offset;
use rdkafka::consumer::ConsumerGroupMetadata;
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::future_producer::DeliveryFuture;
use rdkafka::producer::{FutureProducer, FutureRecord, Producer as _};
use rdkafka::topic_partition_list::TopicPartitionList;
use serde_json::{Value, json};

use crate::{TIMEOUT, config, failure};

pub struct Producer {
    producer: FutureProducer,
    sent: Vec<(String, DeliveryFuture)>,
}

impl Producer {
    pub fn new(bootstrap: &str, settings: &Value) -> Result<Producer, Failure> {
        let transactional_id = settings["transactional_id"].as_str();
        let mut config = config(bootstrap);
        let delivery_timeout_ms =
            settings["delivery_timeout_ms"].number().min(settings["transaction_timeout_ms"].number());
        config
            .set("acks", settings["acks"].to_string())
            .set("compression.type", settings["compression"].text())
            .set("enable.idempotence", (settings["idempotent"].flag() || transactional_id.is_some()).to_string())
            .set("linger.ms", settings["linger_ms"].to_string())
            .set("message.max.bytes", settings["max_request_size"].to_string())
            .set("message.timeout.ms", delivery_timeout_ms.to_string())
            .set("request.timeout.ms", settings["request_timeout_ms"].to_string());
        if let Some(id) = transactional_id {
            config.set("transactional.id", id);
            config.set("transaction.timeout.ms", settings["transaction_timeout_ms"].to_string());
        }
        let producer: FutureProducer = config.create().map_err(failure)?;
        if transactional_id.is_some() {
            producer.init_transactions(TIMEOUT).map_err(failure)?;
        }
        Ok(Producer { producer, sent: Vec::new() })
    }

    pub fn call(&mut self, method: &str, arguments: &Value) -> Answer {
        match method {
            "send" => self.send(arguments),
            "flush" => self.flush(),
            "begin" => self.producer.begin_transaction().map_err(failure).map(|()| Value::Null),
            "commit" => self.end(|producer| producer.commit_transaction(TIMEOUT)),
            "abort" => self.end(|producer| producer.abort_transaction(TIMEOUT)),
            _ => panic!("{method}"),
        }
    }

    fn send(&mut self, arguments: &Value) -> Answer {
        let topic = arguments["topic"].text();
        let (key, value) = (arguments["key"].bytes(), arguments["value"].bytes());
        let mut record: FutureRecord<'_, Vec<u8>, Vec<u8>> = FutureRecord::to(topic);
        record.key = key.as_ref();
        record.payload = value.as_ref();
        record.partition = arguments["partition"].as_i64().map(|partition| partition as i32);
        record.timestamp = arguments["timestamp_ms"].as_i64();
        let mut headers = OwnedHeaders::new();
        for header in arguments["headers"].list() {
            headers = headers.insert(Header { key: header[0].text(), value: header[1].bytes().as_ref() });
        }
        record.headers = Some(headers);
        let future = self.producer.send_result(record).map_err(|(error, _)| failure(error))?;
        self.sent.push((topic.to_string(), future));
        Ok(Value::Null)
    }

    fn flush(&mut self) -> Answer {
        let sent = std::mem::take(&mut self.sent);
        self.producer.flush(Duration::from_secs(60)).map_err(failure)?;
        let mut deliveries = Vec::new();
        for (topic, future) in sent {
            let delivered = wait(future).map_err(Failure::of_client)?;
            let delivery = delivered.map_err(|(error, _)| failure(error))?;
            deliveries.push(json!([topic, delivery.partition, delivery.offset]));
        }
        Ok(json!(deliveries))
    }

    pub fn send_offsets(&self, arguments: &Value, group: &ConsumerGroupMetadata) -> Answer {
        let mut offsets = TopicPartitionList::new();
        for each in arguments["offsets"].list() {
            let (topic, partition) = each.place();
            offsets.add_partition_offset(topic, partition, Offset::Offset(each[2].number())).map_err(failure)?;
        }
        self.repeated(|producer| producer.send_offsets_to_transaction(&offsets, group, TIMEOUT))
    }

    fn end(&mut self, call: impl Fn(&FutureProducer) -> KafkaResult<()>) -> Answer {
        let ended = self.repeated(call);
        if ended.is_ok() {
            self.sent.clear();
        }
        ended
    }

    /// The client wants calls repeated that timed out, as it says in the error.
    fn repeated(&self, call: impl Fn(&FutureProducer) -> KafkaResult<()>) -> Answer {
        let deadline = Instant::now() + 3 * TIMEOUT;
        loop {
            match call(&self.producer) {
                Err(KafkaError::Transaction(error)) if error.is_retriable() && Instant::now() < deadline => {}
                ended => return ended.map_err(failure).map(|()| Value::Null),
            }
        }
    }
}
