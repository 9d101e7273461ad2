/** @platformatic/kafka. Started as `node platformatic.mjs HOST:PORT`. */
import "./zstd.mjs";
import { randomUUID } from "node:crypto";
import * as kafka from "@platformatic/kafka";
import { bytes, grouped, Inbox, serve, sourceNames, text, tlsOptions, within } from "./protocol.mjs";

const CONFIG_SOURCES = sourceNames(kafka.ConfigSources);
// It doesn't tell the type of a timestamp.
const UNKNOWN = -1;
const RETRY_DELAY_MS = 250;
const RETRIES = 20;
// It tries a request again, and for each try a connection, also where a handshake was refused: 441 connections in minutes.
const RETRIES_WHERE_IT_MAY_BE_REFUSED = 3;
const EARLIEST = -2n;
const LATEST = -1n;

let wayIn = {};

function secure(security) {
  const { mechanism, username, password, token } = security;
  wayIn = { tls: tlsOptions(security), tlsServerName: true };
  if (mechanism) {
    wayIn.sasl = mechanism === "OAUTHBEARER" ? { mechanism, token } : { mechanism, username, password };
  }
}

function options(bootstrap, clientId, timeout) {
  const retries = wayIn.tls || wayIn.sasl ? RETRIES_WHERE_IT_MAY_BE_REFUSED : RETRIES;
  return { bootstrapBrokers: [bootstrap], clientId, timeout, retries, retryDelay: RETRY_DELAY_MS, ...wayIn };
}

/** Kafka's code of an error, 0 for one of the client, undefined for anything else. */
function codeOf(error) {
  if (!(error instanceof kafka.GenericError) && !(error instanceof kafka.MultipleErrors)) {
    return undefined;
  }
  return error.apiCode ?? ([error.cause, ...(error.errors ?? [])].map(codeOf).find(Boolean) || 0);
}

/** It has no queue but for a stream without results: what was sent goes out, batch by partition, with flush. */
class Producer {
  #producer;
  #queued = [];
  #settings;
  #transaction;

  static async make(bootstrap, settings) {
    const made = new Producer();
    const idempotent = settings.idempotent || settings.transactional_id !== null;
    made.#settings = { acks: settings.acks, compression: settings.compression };
    made.#producer = new kafka.Producer({
      ...options(bootstrap, "ottla-compat", settings.request_timeout_ms),
      // There is no limit of time, only of attempts.
      retries: Math.ceil(settings.delivery_timeout_ms / RETRY_DELAY_MS),
      idempotent,
      transactionalId: settings.transactional_id ?? undefined,
      autocreateTopics: true,
    });
    return made;
  }

  send({ topic, value, key, partition, timestamp_ms, headers }) {
    this.#queued.push({
      topic,
      key: bytes(key) ?? undefined,
      value: bytes(value),
      partition: partition ?? undefined,
      timestamp: timestamp_ms === null ? undefined : BigInt(timestamp_ms),
      headers: new Map(headers.map(([name, content]) => [Buffer.from(name), bytes(content)])),
    });
  }

  async flush() {
    const queued = this.#queued;
    this.#queued = [];
    const sender = this.#transaction ?? this.#producer;
    const places = new Map();
    // The answer tells a partition's first offset, so records whose partition the client chooses go one by one.
    for (const [alone, sent] of grouped(queued, ({ partition }) => partition === undefined)) {
      for (const messages of alone ? sent.map((each) => [each]) : [sent]) {
        const { offsets = [] } = await sender.send({ ...this.#settings, messages });
        const next = new Map(offsets.map((each) => [`${each.topic}:${each.partition}`, Number(each.offset)]));
        for (const message of messages) {
          const partition = message.partition ?? offsets[0]?.partition ?? -1;
          const key = `${message.topic}:${partition}`;
          places.set(message, [message.topic, partition, next.get(key) ?? -1]);
          next.set(key, next.get(key) + 1);
        }
      }
    }
    return queued.map((each) => places.get(each));
  }

  async begin() {
    // Without these it claims to be producer 0, and a broker that has seen the transactional id before fences it.
    this.#transaction = await this.#producer.beginTransaction({ producerId: -1n, producerEpoch: -1 });
  }

  async commit() {
    await this.flush();
    await this.#transaction.commit();
    this.#transaction = undefined;
  }

  async abort() {
    this.#queued = [];
    await this.#transaction.abort();
    this.#transaction = undefined;
  }

  /** A transaction takes the offset of a message that was consumed. */
  async send_offsets({ offsets, group }) {
    await group.addTo(this.#transaction, offsets);
  }

  close() {
    return within(5_000, this.#producer.close());
  }
}

/**
 * Every consumer is a member of a group, so one without a group id has a group to itself. To read given partitions it
 * consumes their topics from given offsets, and what comes from the other partitions is left out.
 */
class Consumer {
  #consumer;
  #consumed = new Map();
  #inbox = new Inbox();
  #settings;
  #stream;
  #wanted;

  static async make(bootstrap, settings) {
    const made = new Consumer();
    made.#consumer = new kafka.Consumer({
      ...options(bootstrap, settings.client_id, 60_000),
      metadataMaxAge: 1_000,
      groupId: settings.group_id ?? randomUUID(),
      groupInstanceId: settings.group_instance_id ?? undefined,
      sessionTimeout: settings.session_timeout_ms,
      heartbeatInterval: settings.heartbeat_interval_ms,
      rebalanceTimeout: 60_000,
      groupProtocol: settings.group_protocol,
      groupRemoteAssignor: settings.remote_assignor ?? undefined,
    });
    made.#settings = {
      autocommit: settings.auto_commit && settings.group_id !== null && settings.auto_commit_interval_ms,
      fallbackMode: settings.auto_offset_reset === "none" ? "fail" : settings.auto_offset_reset,
      minBytes: settings.fetch_min_bytes,
      maxBytes: settings.fetch_max_bytes,
      maxBytesPerPartition: settings.max_partition_fetch_bytes,
      maxWaitTime: settings.fetch_max_wait_ms,
      isolationLevel: settings.read_committed ? 1 : 0,
    };
    return made;
  }

  async #consume(settings) {
    const stream = await this.#consumer.consume({ ...this.#settings, ...settings });
    stream.on("error", (error) => this.#inbox.fail(error));
    stream.on("data", (message) => {
      if (stream === this.#stream) {
        this.#take(message);
      }
    });
    this.#stream = stream;
  }

  #take(message) {
    const { topic, partition, offset, timestamp, key, value, headers } = message;
    if (this.#wanted?.has(`${topic}:${partition}`) === false) {
      return;
    }
    this.#consumed.set(`${topic}:${partition}:${offset}`, message);
    const flat = [...headers].map(([name, content]) => [name.toString(), text(content)]);
    this.#inbox.put([[topic, partition, Number(offset), Number(timestamp), UNKNOWN], [text(key), text(value)], flat]);
  }

  async assign({ starts }) {
    this.#wanted = new Map();
    for (const [topic, partition, start] of starts) {
      let offset = start;
      if (typeof start === "string") {
        const timestamp = start === "beginning" ? EARLIEST : LATEST;
        offset = await this.#offset(topic, partition, timestamp);
      }
      this.#inbox.seek(topic, partition, Number(offset));
      this.#wanted.set(`${topic}:${partition}`, { topic, partition, offset: BigInt(offset) });
    }
    const topics = [...new Set(starts.map(([topic]) => topic))];
    await this.#consume({ topics, mode: "manual", offsets: [...this.#wanted.values()] });
  }

  async subscribe({ topics }) {
    await this.#consume({ topics, mode: "committed" });
  }

  poll({ timeout_ms }) {
    return this.#inbox.poll(timeout_ms);
  }

  /** A stream has no way back: another one goes on where this is to continue. */
  async seek({ where: [topic, partition], offset }) {
    const stream = this.#stream;
    this.#stream = undefined;
    await stream.close();
    this.#inbox.seek(topic, partition, offset);
    for (const each of this.#wanted.values()) {
      each.offset = BigInt(this.#inbox.position(each.topic, each.partition));
    }
    const topics = [...new Set([...this.#wanted.values()].map((each) => each.topic))];
    await this.#consume({ topics, mode: "manual", offsets: [...this.#wanted.values()] });
  }

  position({ where }) {
    return this.#inbox.position(...where);
  }

  assignment() {
    const owned = this.#consumer.assignments ?? [];
    return owned.flatMap(({ topic, partitions }) => partitions.map((partition) => [topic, partition]));
  }

  async commit({ offsets }) {
    this.#inbox.check();
    await this.#consumer.commit({
      offsets: offsets.map(([topic, partition, offset]) => ({
        topic,
        partition,
        offset: BigInt(offset),
        leaderEpoch: -1,
      })),
    });
  }

  async committed({ where: [topic, partition] }) {
    const found = await this.#consumer.listCommittedOffsets({ topics: [{ topic, partitions: [partition] }] });
    const offset = Number(found.get(topic)[partition]);
    return offset === -1 ? null : [offset, ""];
  }

  async #offset(topic, partition, timestamp) {
    const found = await this.#consumer.listOffsets({
      topics: [topic],
      partitions: { [topic]: [partition] },
      timestamp,
    });
    return Number(found.get(topic)[partition]);
  }

  async watermarks({ where: [topic, partition] }) {
    return [await this.#offset(topic, partition, EARLIEST), await this.#offset(topic, partition, LATEST)];
  }

  async offset_for_time({ where: [topic, partition], timestamp_ms }) {
    const offset = await this.#offset(topic, partition, BigInt(timestamp_ms));
    return offset === -1 ? null : offset;
  }

  /** Commit the offsets that follow messages of this consumer in a transaction. */
  async addTo(transaction, offsets) {
    await transaction.addConsumer(this.#consumer);
    for (const [topic, partition, offset] of offsets) {
      await transaction.addOffset(this.#consumed.get(`${topic}:${partition}:${offset - 1}`));
    }
  }

  close() {
    return within(5_000, this.#consumer.close(true));
  }
}

class Admin {
  #admin;

  static async make(bootstrap) {
    const made = new Admin();
    made.#admin = new kafka.Admin({ ...options(bootstrap, "ottla-compat", 20_000), metadataMaxAge: 0 });
    return made;
  }

  async create_topic({ name, partitions, replication_factor, configs }) {
    await this.#admin.createTopics({
      topics: [name],
      partitions,
      replicas: replication_factor,
      configs: Object.entries(configs).map(([name, value]) => ({ name, value })),
    });
  }

  async delete_topic({ name }) {
    await this.#admin.deleteTopics({ topics: [name] });
  }

  list_topics() {
    return this.#admin.listTopics();
  }

  async #partitions(name) {
    const { topics } = await this.#admin.metadata({ topics: [name], forceUpdate: true });
    return [...topics.get(name).partitions.entries()];
  }

  async describe_topic({ name }) {
    return (await this.#partitions(name)).map(([partition, { leader }]) => [partition, leader]);
  }

  async create_partitions({ name, total }) {
    await this.#admin.createPartitions({ topics: [{ name, count: total }] });
  }

  async describe_configs({ kind, name }) {
    const resource = { resourceType: kafka.ConfigResourceTypes[kind.toUpperCase()], resourceName: name };
    const [{ configs }] = await this.#admin.describeConfigs({ resources: [resource], includeSynonyms: true });
    return Object.fromEntries(
      configs.map(({ name, value, configSource, readOnly, isSensitive, synonyms }) => [
        name,
        [
          value,
          CONFIG_SOURCES[configSource],
          readOnly,
          isSensitive,
          synonyms.map((each) => [each.name, each.value, CONFIG_SOURCES[each.source]]),
        ],
      ]),
    );
  }

  async alter_configs({ name, configs }) {
    const changed = Object.entries(configs).map(([name, value]) => ({ name, value }));
    await this.#admin.alterConfigs({ resources: [topicResource(name, changed)] });
  }

  async incremental_alter_configs({ name, changes }) {
    const configs = changes.map(([operation, name, value]) => {
      const configOperation = kafka.IncrementalAlterConfigOperationTypes[operation.toUpperCase()];
      return value === null ? { name, configOperation } : { name, configOperation, value };
    });
    await this.#admin.incrementalAlterConfigs({ resources: [topicResource(name, configs)] });
  }

  async list_groups() {
    return [...(await this.#admin.listGroups()).keys()];
  }

  async describe_group({ name }) {
    const { state, members } = (await this.#admin.describeGroups({ groups: [name] })).get(name);
    const owned = [...members.values()].map(({ id, assignments }) => [
      id,
      [...(assignments?.values() ?? [])].flatMap(({ topic, partitions }) => partitions.map((each) => [topic, each])),
    ]);
    const words = state.split("_").map((word) => word[0] + word.slice(1).toLowerCase());
    return [words.join(""), Object.fromEntries(owned)];
  }

  async delete_group({ name }) {
    await this.#admin.deleteGroups({ groups: [name] });
  }

  async group_offsets({ name }) {
    const [{ topics }] = await this.#admin.listConsumerGroupOffsets({ groups: [name] });
    return topics.flatMap(({ name, partitions }) =>
      partitions.map((each) => [name, each.partitionIndex, each.committedOffset, each.metadata]),
    );
  }

  async delete_records({ where: [name, partition], before_offset }) {
    const topic = { name, partitions: [{ partition, offset: BigInt(before_offset) }] };
    const [{ partitions }] = await this.#admin.deleteRecords({ topics: [topic] });
    return partitions[0].lowWatermark;
  }

  async list_offset({ where: [name, partitionIndex], spec }) {
    const topic = { name, partitions: [{ partitionIndex, timestamp: BigInt(spec) }] };
    const [{ partitions }] = await this.#admin.listOffsets({ topics: [topic] });
    return partitions[0].offset;
  }

  async describe_cluster() {
    const { id, controllerId, brokers } = await this.#admin.metadata({ forceUpdate: true });
    return [id, controllerId, [...brokers].map(([node, { host, port }]) => [node, host, port])];
  }

  async describe_log_dirs({ name }) {
    const partitions = (await this.#partitions(name)).map(([partition]) => partition);
    const brokers = await this.#admin.describeLogDirs({ topics: [{ name, partitions }] });
    const found = brokers.flatMap(({ results }) => results.flatMap(({ topics }) => topics));
    return found.flatMap((topic) => topic.partitions.map((each) => [each.partitionIndex, each.partitionSize]));
  }

  close() {
    return this.#admin.close();
  }
}

function topicResource(resourceName, configs) {
  return { resourceType: kafka.ConfigResourceTypes.TOPIC, resourceName, configs };
}

const bootstrap = process.argv[2];
await serve(
  {
    secure,
    producer: (settings) => Producer.make(bootstrap, settings),
    consumer: (settings) => Consumer.make(bootstrap, settings),
    admin: () => Admin.make(bootstrap),
  },
  codeOf,
);
