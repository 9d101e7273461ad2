//! rdkafka, the binding of librdkafka. Started as `drive-rdkafka HOST:PORT`.

mod admin;
mod consumer;
mod producer;

use std::time::Duration;

use pipe::{Answer, Failure, Library, Role};
use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(20);

/// Kafka's code of an error; librdkafka's own are negative.
fn failure(error: KafkaError) -> Failure {
    let code = match &error {
        KafkaError::AdminOp(code) => Some(*code),
        other => other.rdkafka_error_code(),
    };
    Failure { text: error.to_string(), code: code.map_or(0, |code| code as i32) }
}

/// The failure of one thing in an answer about several.
fn refused(code: RDKafkaErrorCode) -> Failure {
    Failure { text: code.to_string(), code: code as i32 }
}

/// What all clients here are told.
fn config(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap).set("reconnect.backoff.max.ms", "500").set("log_level", "0");
    config
}

struct Rdkafka {
    bootstrap: String,
}

enum Object {
    Producer(producer::Producer),
    Consumer(consumer::Consumer),
    Admin(admin::Admin),
}

impl Role for Object {
    fn call(&mut self, method: &str, arguments: &Value) -> Answer {
        match self {
            Object::Producer(producer) => producer.call(method, arguments),
            Object::Consumer(consumer) => consumer.call(method, arguments),
            Object::Admin(admin) => admin.call(method, arguments),
        }
    }
}

impl Library for Rdkafka {
    type Object = Object;

    fn make(&self, role: &str, settings: &Value) -> Result<Object, Failure> {
        Ok(match role {
            "producer" => Object::Producer(producer::Producer::new(&self.bootstrap, settings)?),
            "consumer" => Object::Consumer(consumer::Consumer::new(&self.bootstrap, settings)?),
            "admin" => Object::Admin(admin::Admin::new(&self.bootstrap)?),
            _ => panic!("{role}"),
        })
    }

    fn send_offsets(&self, producer: &Object, group: &Object, arguments: &Value) -> Answer {
        match (producer, group) {
            (Object::Producer(producer), Object::Consumer(group)) => producer.send_offsets(arguments, &group.group()),
            _ => panic!("a producer and a consumer"),
        }
    }
}

fn main() {
    pipe::serve(&Rdkafka { bootstrap: std::env::args().next_back().expect("HOST:PORT") });
}
