//! rskafka. Started as `drive-rskafka HOST:PORT`.
//!
//! It has clients for a partition and for the controller, and nothing of groups, transactions or configs.

mod admin;
mod consumer;
mod producer;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pipe::{Answer, Failure, Library, Role, wait};
use rskafka::BackoffConfig;
use rskafka::client::error::{Error, ProtocolError};
use rskafka::client::partition::{PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use serde_json::Value;

/// Kafka's code of an error, 0 for one of the client.
fn failure(error: Error) -> Failure {
    let code = match &error {
        // The error doesn't tell its number.
        Error::ServerError { protocol_error, .. } => {
            (1..200).find(|code| ProtocolError::new(*code) == Some(*protocol_error)).map_or(0, i32::from)
        }
        _ => 0,
    };
    Failure { text: error.to_string(), code }
}

/// A client with its partition clients. What fails for a passing reason is repeated for as long as `patience`.
struct Connection {
    client: Client,
    unknown_topics: UnknownTopicHandling,
    partitions: HashMap<(String, i32), Arc<PartitionClient>>,
}

impl Connection {
    fn new(
        bootstrap: &str,
        id: &str,
        patience: Duration,
        unknown_topics: UnknownTopicHandling,
    ) -> Result<Self, Failure> {
        let backoff = BackoffConfig {
            init_backoff: Duration::from_millis(50),
            max_backoff: Duration::from_millis(500),
            base: 2.0,
            deadline: Some(patience),
        };
        let builder = ClientBuilder::new(vec![bootstrap.to_string()]).client_id(id).backoff_config(backoff);
        let client = wait(builder.build()).map_err(failure)?;
        Ok(Connection { client, unknown_topics, partitions: HashMap::new() })
    }

    fn partition(&mut self, (topic, number): (&str, i32)) -> Result<Arc<PartitionClient>, Failure> {
        let place = (topic.to_string(), number);
        if !self.partitions.contains_key(&place) {
            let made = wait(self.client.partition_client(topic, number, self.unknown_topics));
            self.partitions.insert(place.clone(), Arc::new(made.map_err(failure)?));
        }
        Ok(self.partitions[&place].clone())
    }
}

struct Rskafka {
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

impl Library for Rskafka {
    type Object = Object;

    fn make(&self, role: &str, settings: &Value) -> Result<Object, Failure> {
        Ok(match role {
            "producer" => Object::Producer(producer::Producer::new(&self.bootstrap, settings)?),
            "consumer" => Object::Consumer(consumer::Consumer::new(&self.bootstrap, settings)?),
            "admin" => Object::Admin(admin::Admin::new(&self.bootstrap)?),
            _ => panic!("{role}"),
        })
    }

    fn send_offsets(&self, _: &Object, _: &Object, _: &Value) -> Answer {
        panic!("it has no transactions")
    }
}

fn main() {
    pipe::serve(&Rskafka { bootstrap: std::env::args().next_back().expect("HOST:PORT") });
}
