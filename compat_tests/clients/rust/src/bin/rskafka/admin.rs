//! ControllerClient, and what the clients of the cluster and of a partition can do besides.

use std::time::Duration;

use pipe::{Answer, Argument, Failure, wait};
use rskafka::chrono::DateTime;
use rskafka::client::controller::ControllerClient;
use rskafka::client::partition::{OffsetAt, UnknownTopicHandling};
use serde_json::{Value, json};

use crate::{Connection, failure};

const TIMEOUT_MS: i32 = 20_000;

pub struct Admin {
    connection: Connection,
    controller: ControllerClient,
}

impl Admin {
    pub fn new(bootstrap: &str) -> Result<Admin, Failure> {
        let patience = Duration::from_millis(TIMEOUT_MS as u64);
        let connection = Connection::new(bootstrap, "ottla-compat", patience, UnknownTopicHandling::Error)?;
        let controller = connection.client.controller_client().map_err(failure)?;
        Ok(Admin { connection, controller })
    }

    pub fn call(&mut self, method: &str, arguments: &Value) -> Answer {
        let name = arguments["name"].as_str().unwrap_or_default();
        match method {
            "create_topic" => {
                let partitions = arguments["partitions"].number() as i32;
                let replicas = arguments["replication_factor"].number() as i16;
                let created = wait(self.controller.create_topic(name, partitions, replicas, TIMEOUT_MS));
                created.map(|()| Value::Null).map_err(failure)
            }
            "delete_topic" => {
                wait(self.controller.delete_topic(name, TIMEOUT_MS)).map(|()| Value::Null).map_err(failure)
            }
            "list_topics" => {
                let topics = wait(self.connection.client.list_topics()).map_err(failure)?;
                Ok(topics.into_iter().map(|topic| json!(topic.name)).collect())
            }
            "describe_topic" => {
                let topics = wait(self.connection.client.list_topics()).map_err(failure)?;
                let found = topics.into_iter().find(|topic| topic.name == name);
                let topic = found.ok_or_else(|| Failure::of_client(format!("no topic {name}")))?;
                Ok(topic.partitions.iter().map(|partition| json!([partition, Value::Null])).collect())
            }
            "delete_records" => self.delete_records(arguments["where"].place(), arguments["before_offset"].number()),
            "list_offset" => {
                let at = match arguments["spec"].number() {
                    -1 => OffsetAt::Latest,
                    -2 => OffsetAt::Earliest,
                    time => OffsetAt::Timestamp(DateTime::from_timestamp_millis(time).expect("a time")),
                };
                let client = self.connection.partition(arguments["where"].place())?;
                wait(client.get_offset(at)).map(|offset| json!(offset)).map_err(failure)
            }
            _ => panic!("{method}"),
        }
    }

    /// The client's call has no answer, so the first offset is asked for.
    fn delete_records(&mut self, place: (&str, i32), before: i64) -> Answer {
        let client = self.connection.partition(place)?;
        wait(client.delete_records(before, TIMEOUT_MS)).map_err(failure)?;
        wait(client.get_offset(OffsetAt::Earliest)).map(|offset| json!(offset)).map_err(failure)
    }
}
