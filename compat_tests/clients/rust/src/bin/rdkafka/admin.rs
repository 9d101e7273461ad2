//! AdminClient, and what its crate offers on any client: metadata and groups.

use pipe::{Answer, Argument, Failure, wait};
use rdkafka::Offset;
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, ConfigSource, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication,
    TopicResult,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaResult;
use rdkafka::metadata::Metadata;
use rdkafka::topic_partition_list::TopicPartitionList;
use serde_json::{Map, Value, json};

use crate::consumer::offset;
use crate::{TIMEOUT, config, failure, refused};

pub struct Admin {
    admin: AdminClient<DefaultClientContext>,
    bootstrap: String,
}

impl Admin {
    pub fn new(bootstrap: &str) -> Result<Admin, Failure> {
        Ok(Admin { admin: config(bootstrap).create().map_err(failure)?, bootstrap: bootstrap.to_string() })
    }

    pub fn call(&mut self, method: &str, arguments: &Value) -> Answer {
        let options = AdminOptions::new().request_timeout(Some(TIMEOUT)).operation_timeout(Some(TIMEOUT));
        let name = arguments["name"].as_str().unwrap_or_default();
        match method {
            "create_topic" => self.create_topic(name, arguments, options),
            "delete_topic" => done(wait(self.admin.delete_topics(&[name], &options))),
            "create_partitions" => {
                let total = NewPartitions::new(name, arguments["total"].size());
                done(wait(self.admin.create_partitions(&[total], &options)))
            }
            "describe_configs" => self.describe_configs(name, arguments["kind"].text(), &options),
            "alter_configs" => self.alter_configs(name, arguments, &options),
            "delete_group" => done(wait(self.admin.delete_groups(&[name], &options))),
            "delete_records" => self.delete_records(arguments, &options),
            _ => self.describe(method, name),
        }
    }

    fn describe(&self, method: &str, name: &str) -> Answer {
        match method {
            "list_topics" => Ok(self.metadata()?.topics().iter().map(|topic| json!(topic.name())).collect()),
            "describe_topic" => {
                let metadata = self.metadata()?;
                let found = metadata.topics().iter().find(|topic| topic.name() == name);
                let topic = found.ok_or_else(|| Failure::of_client(format!("no topic {name}")))?;
                Ok(topic.partitions().iter().map(|each| json!([each.id(), each.leader()])).collect())
            }
            "describe_cluster" => {
                let cluster_id = self.admin.inner().fetch_cluster_id(TIMEOUT);
                let metadata = self.metadata()?;
                let brokers: Vec<Value> =
                    metadata.brokers().iter().map(|each| json!([each.id(), each.host(), each.port()])).collect();
                Ok(json!([cluster_id, -1, brokers]))
            }
            "list_groups" => {
                let list = self.admin.inner().fetch_group_list(None, TIMEOUT).map_err(failure)?;
                Ok(list.groups().iter().map(|group| json!(group.name())).collect())
            }
            "describe_group" => self.describe_group(name),
            "group_offsets" => self.group_offsets(name),
            _ => panic!("{method}"),
        }
    }

    fn metadata(&self) -> Result<Metadata, Failure> {
        self.admin.inner().fetch_metadata(None, TIMEOUT).map_err(failure)
    }

    fn create_topic(&self, name: &str, arguments: &Value, options: AdminOptions) -> Answer {
        let replicas = TopicReplication::Fixed(arguments["replication_factor"].number() as i32);
        let mut topic = NewTopic::new(name, arguments["partitions"].number() as i32, replicas);
        for (config, value) in arguments["configs"].as_object().expect("configs") {
            topic = topic.set(config, value.text());
        }
        let options = options.validate_only(arguments["validate_only"].flag());
        done(wait(self.admin.create_topics(&[topic], &options)))
    }

    fn describe_configs(&self, name: &str, kind: &str, options: &AdminOptions) -> Answer {
        let resource = match kind {
            "topic" => ResourceSpecifier::Topic(name),
            _ => ResourceSpecifier::Broker(name.parse().expect("a broker's id")),
        };
        let described = wait(self.admin.describe_configs(&[resource], options)).map_err(failure)?;
        let found = described.into_iter().next().expect("what was asked for").map_err(refused)?;
        let entries = found.entries.into_iter().map(|entry| {
            let source = source(&entry.source);
            (entry.name, json!([entry.value, source, entry.is_read_only, entry.is_sensitive, []]))
        });
        Ok(Value::Object(entries.collect::<Map<String, Value>>()))
    }

    fn alter_configs(&self, name: &str, arguments: &Value, options: &AdminOptions) -> Answer {
        let mut change = AlterConfig::new(ResourceSpecifier::Topic(name));
        for (config, value) in arguments["configs"].as_object().expect("configs") {
            change = change.set(config, value.text());
        }
        let altered = wait(self.admin.alter_configs(&[change], options)).map_err(failure)?;
        altered.into_iter().try_for_each(|each| each.map(|_| ()).map_err(|(_, code)| refused(code)))?;
        Ok(Value::Null)
    }

    fn delete_records(&self, arguments: &Value, options: &AdminOptions) -> Answer {
        let (topic, partition) = arguments["where"].place();
        let before = match arguments["before_offset"].number() {
            -1 => Offset::End,
            number => Offset::Offset(number),
        };
        let mut wanted = TopicPartitionList::new();
        wanted.add_partition_offset(topic, partition, before).map_err(failure)?;
        let deleted = wait(self.admin.delete_records(&wanted, options)).map_err(failure)?;
        let found = deleted.find_partition(topic, partition).expect("what was asked for");
        found.error().map_err(failure)?;
        Ok(json!(offset(found.offset())))
    }

    fn describe_group(&self, name: &str) -> Answer {
        let list = self.admin.inner().fetch_group_list(Some(name), TIMEOUT).map_err(failure)?;
        let group = list.groups().first().ok_or_else(|| Failure::of_client(format!("no group {name}")))?;
        let members = group.members().iter().map(|member| {
            let owned = member.assignment().filter(|bytes| !bytes.is_empty()).map_or(vec![], partitions);
            (member.id().to_string(), json!(owned))
        });
        Ok(json!([group.state(), members.collect::<Map<String, Value>>()]))
    }

    /// The admin client has no such call; a consumer of the group that never joins it can be asked, partition by partition.
    fn group_offsets(&self, name: &str) -> Answer {
        let consumer: BaseConsumer = config(&self.bootstrap).set("group.id", name).create().map_err(failure)?;
        let mut wanted = TopicPartitionList::new();
        for topic in self.metadata()?.topics() {
            for partition in topic.partitions() {
                wanted.add_partition(topic.name(), partition.id());
            }
        }
        let committed = consumer.committed_offsets(wanted, TIMEOUT).map_err(failure)?;
        let found = committed.elements().into_iter().filter_map(|each| {
            offset(each.offset()).map(|at| json!([each.topic(), each.partition(), at, each.metadata()]))
        });
        Ok(found.collect())
    }
}

/// What became of the one topic or group of a request.
fn done(results: KafkaResult<Vec<TopicResult>>) -> Answer {
    let result = results.map_err(failure)?.pop().expect("what was asked for");
    result.map(|_| Value::Null).map_err(|(_, code)| refused(code))
}

fn source(source: &ConfigSource) -> &'static str {
    match source {
        ConfigSource::DynamicTopic => "DYNAMIC_TOPIC_CONFIG",
        ConfigSource::DynamicBroker => "DYNAMIC_BROKER_CONFIG",
        ConfigSource::DynamicDefaultBroker => "DYNAMIC_DEFAULT_BROKER_CONFIG",
        ConfigSource::StaticBroker => "STATIC_BROKER_CONFIG",
        ConfigSource::Default => "DEFAULT_CONFIG",
        ConfigSource::Unknown => "UNKNOWN",
    }
}

/// The partitions in a member's assignment, which the crate gives as it is on the wire: a version, then topics with their
/// partitions; numbers are big-endian, a name comes after its length of two bytes, a list after its length of four.
fn partitions(mut assignment: &[u8]) -> Vec<(String, i32)> {
    fn number<const SIZE: usize>(bytes: &mut &[u8]) -> i32 {
        let (head, tail) = bytes.split_at(SIZE);
        *bytes = tail;
        head.iter().fold(0, |number, byte| number << 8 | i32::from(*byte))
    }
    let mut owned = Vec::new();
    number::<2>(&mut assignment);
    for _ in 0..number::<4>(&mut assignment) {
        let length = number::<2>(&mut assignment) as usize;
        let (name, rest) = assignment.split_at(length);
        assignment = rest;
        for _ in 0..number::<4>(&mut assignment) {
            owned.push((String::from_utf8_lossy(name).into_owned(), number::<4>(&mut assignment)));
        }
    }
    owned
}
