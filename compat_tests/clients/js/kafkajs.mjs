/** KafkaJS. Started as `node kafkajs.mjs HOST:PORT`. */
import "./zstd.mjs";
import { randomUUID } from "node:crypto";
import zlib from "node:zlib";
import kafkajs from "kafkajs";
import snappy from "kafkajs-snappy";
import * as lz4 from "lz4-napi";
import { bytes, Failure, grouped, Inbox, serve, sourceNames, text, tlsOptions, within } from "./protocol.mjs";

const { AssignerProtocol, CompressionCodecs, CompressionTypes, ConfigResourceTypes, ConfigSource, Kafka } = kafkajs;
const TOPIC_ALREADY_EXISTS = 36;
const COMPRESSIONS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
};
const CONFIG_SOURCES = sourceNames(ConfigSource);

// Codecs come from elsewhere, as its documentation shows.
CompressionCodecs[CompressionTypes.Snappy] = snappy;
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: (encoder) => lz4.compressFrame(encoder.buffer),
  decompress: (buffer) => lz4.decompressFrame(buffer),
});
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => zlib.zstdCompressSync(encoder.buffer),
  decompress: async (buffer) => zlib.zstdDecompressSync(buffer),
});

let wayIn = {};

function secure(security) {
  const { mechanism, username, password, token } = security;
  wayIn = { ssl: tlsOptions(security) };
  if (mechanism === "OAUTHBEARER") {
    wayIn.sasl = { mechanism, oauthBearerProvider: async () => ({ value: token }) };
  } else if (mechanism) {
    wayIn.sasl = { mechanism, username, password };
  }
}

/** There is no limit of time, only of attempts; the pauses between them are of half a second at most. */
function connection(bootstrap, clientId, requestTimeout = 20_000, patience = 20_000) {
  const retry = { initialRetryTime: 100, maxRetryTime: 500, retries: Math.ceil(patience / 500) };
  return new Kafka({ brokers: [bootstrap], clientId, requestTimeout, retry, logLevel: kafkajs.logLevel.NOTHING, ...wayIn });
}

/** Kafka's code of an error, 0 for one of the client, undefined for anything else. */
function codeOf(error) {
  if (!(error instanceof kafkajs.KafkaJSError) && !(error instanceof kafkajs.KafkaJSAggregateError)) {
    return undefined;
  }
  const nested = [
    error.cause,
    error.originalError,
    ...(error.errors ?? []),
    ...(error.partitions ?? []).map((each) => each.error),
    ...(error.groups ?? []).map((each) => each.error),
  ];
  return Number.isInteger(error.code) ? error.code : (nested.map(codeOf).find(Boolean) ?? 0);
}

/** It has no queue: what was sent goes out, batch by partition, with flush. */
class Producer {
  #producer;
  #settings;
  #transaction;
  #queued = [];

  static async make(bootstrap, settings) {
    const made = new Producer();
    const transactionalId = settings.transactional_id ?? undefined;
    const idempotent = settings.idempotent || transactionalId !== undefined;
    made.#settings = {
      acks: settings.acks,
      compression: COMPRESSIONS[settings.compression],
      timeout: settings.request_timeout_ms,
    };
    const { request_timeout_ms, delivery_timeout_ms } = settings;
    const kafka = connection(bootstrap, "ottla-compat", request_timeout_ms, delivery_timeout_ms);
    made.#producer = kafka.producer({
      idempotent,
      transactionalId,
      transactionTimeout: settings.transaction_timeout_ms,
      maxInFlightRequests: idempotent ? 1 : undefined,
    });
    await made.#producer.connect();
    return made;
  }

  send({ topic, value, key, partition, timestamp_ms, headers }) {
    const message = { key: bytes(key), value: bytes(value) };
    if (headers.length > 0) {
      message.headers = {};
      for (const [name, values] of grouped(headers, ([name]) => name)) {
        message.headers[name] = values.length === 1 ? bytes(values[0][1]) : values.map(([, each]) => bytes(each));
      }
    }
    if (partition !== null) {
      message.partition = partition;
    }
    if (timestamp_ms !== null) {
      message.timestamp = String(timestamp_ms);
    }
    this.#queued.push({ topic, message });
  }

  async flush() {
    const queued = this.#queued;
    this.#queued = [];
    const sender = this.#transaction ?? this.#producer;
    const deliveries = [];
    // The answer tells a partition's first offset, so records whose partition the client chooses go one by one.
    const batches = grouped(queued, (each) => each.message.partition === undefined);
    for (const [alone, sent] of batches) {
      for (const batch of alone ? sent.map((each) => [each]) : [sent]) {
        const topics = grouped(batch, ({ topic }) => topic);
        const topicMessages = [...topics].map(([topic, of]) => ({ topic, messages: of.map(({ message }) => message) }));
        const answer = await sender.sendBatch({ ...this.#settings, topicMessages });
        const next = new Map(answer.map((each) => [`${each.topicName}:${each.partition}`, Number(each.baseOffset)]));
        for (const each of batch) {
          const partition = each.message.partition ?? answer[0]?.partition ?? -1;
          const key = `${each.topic}:${partition}`;
          deliveries.push([each, [each.topic, partition, next.get(key) ?? -1]]);
          next.set(key, next.get(key) + 1);
        }
      }
    }
    const places = new Map(deliveries);
    return queued.map((each) => places.get(each));
  }

  async begin() {
    this.#transaction = await this.#producer.transaction();
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

  async send_offsets({ offsets, group }) {
    await this.#transaction.sendOffsets({ consumerGroupId: group.groupId, topics: byTopic(offsets) });
  }

  close() {
    return within(5_000, this.#producer.disconnect());
  }
}

/** Offsets as the client takes them. */
function byTopic(offsets) {
  const topics = grouped(offsets, ([topic]) => topic);
  return [...topics].map(([topic, of]) => ({
    topic,
    partitions: of.map(([, partition, offset]) => ({ partition, offset: String(offset) })),
  }));
}

/**
 * Every KafkaJS consumer is a member of a group, so one without a group id has a group to itself. To read given partitions
 * it subscribes to their topics, seeks, and pauses the other partitions.
 */
class Consumer {
  groupId;
  #admin;
  #consumer;
  #fromBeginning;
  #inbox = new Inbox();
  #owned = [];
  #run;
  #wanted;

  static async make(bootstrap, settings) {
    const made = new Consumer();
    made.groupId = settings.group_id ?? randomUUID();
    made.#fromBeginning = settings.auto_offset_reset === "earliest";
    const kafka = connection(bootstrap, settings.client_id, 60_000);
    made.#admin = kafka.admin();
    made.#consumer = kafka.consumer({
      groupId: made.groupId,
      sessionTimeout: settings.session_timeout_ms,
      heartbeatInterval: settings.heartbeat_interval_ms,
      rebalanceTimeout: 60_000,
      metadataMaxAge: 1_000,
      maxWaitTimeInMs: settings.fetch_max_wait_ms,
      minBytes: settings.fetch_min_bytes,
      maxBytes: settings.fetch_max_bytes,
      maxBytesPerPartition: settings.max_partition_fetch_bytes,
      readUncommitted: !settings.read_committed,
      allowAutoTopicCreation: false,
    });
    made.#run = {
      autoCommit: settings.auto_commit && settings.group_id !== null,
      autoCommitInterval: settings.auto_commit_interval_ms,
      eachBatch: (payload) => made.#take(payload),
    };
    const { GROUP_JOIN, CRASH } = made.#consumer.events;
    made.#consumer.on(GROUP_JOIN, ({ payload }) => {
      made.#owned = Object.entries(payload.memberAssignment).flatMap(([topic, of]) => of.map((each) => [topic, each]));
    });
    made.#consumer.on(CRASH, ({ payload }) => {
      made.#owned = [];
      if (!payload.restart) {
        made.#inbox.fail(payload.error);
      }
    });
    await Promise.all([made.#admin.connect(), made.#consumer.connect()]);
    return made;
  }

  #take({ batch, isStale }) {
    // Fetching begins before the other partitions are paused.
    if (isStale() || this.#wanted?.has(`${batch.topic}:${batch.partition}`) === false) {
      return;
    }
    for (const { offset, timestamp, key, value, headers, batchContext } of batch.messages) {
      const place = [batch.topic, batch.partition, Number(offset), Number(timestamp), batchContext.timestampType];
      const flat = Object.entries(headers).flatMap(([name, of]) => [of].flat().map((each) => [name, text(each)]));
      this.#inbox.put([place, [text(key), text(value)], flat]);
    }
  }

  async assign({ starts }) {
    const offsets = new Map();
    for (const topic of new Set(starts.map(([topic]) => topic))) {
      offsets.set(topic, await this.#admin.fetchTopicOffsets(topic));
    }
    this.#wanted = new Set(starts.map(([topic, partition]) => `${topic}:${partition}`));
    await this.subscribe({ topics: [...offsets.keys()] });
    for (const [topic, found] of offsets) {
      const others = found.map(({ partition }) => partition).filter((each) => !this.#wanted.has(`${topic}:${each}`));
      this.#consumer.pause([{ topic, partitions: others }]);
    }
    for (const [topic, partition, start] of starts) {
      const { low, high } = offsets.get(topic).find((each) => each.partition === partition);
      this.seek({ where: [topic, partition], offset: { beginning: low, end: high }[start] ?? start });
    }
  }

  async subscribe({ topics }) {
    await this.#consumer.subscribe({ topics, fromBeginning: this.#fromBeginning });
    await this.#consumer.run(this.#run);
  }

  subscribe_pattern({ pattern }) {
    return this.subscribe({ topics: [new RegExp(pattern)] });
  }

  poll({ timeout_ms }) {
    return this.#inbox.poll(timeout_ms);
  }

  seek({ where: [topic, partition], offset }) {
    this.#inbox.seek(topic, partition, Number(offset));
    this.#consumer.seek({ topic, partition, offset: String(offset) });
  }

  position({ where }) {
    return this.#inbox.position(...where);
  }

  assignment() {
    return this.#owned;
  }

  async commit({ offsets }) {
    this.#inbox.check();
    await this.#consumer.commitOffsets(
      offsets.map(([topic, partition, offset, metadata]) => ({ topic, partition, offset: String(offset), metadata })),
    );
  }

  async committed({ where: [topic, partition] }) {
    const [{ partitions }] = await this.#admin.fetchOffsets({ groupId: this.groupId, topics: [topic] });
    const at = partitions.find((each) => each.partition === partition);
    return at.offset === "-1" ? null : [Number(at.offset), at.metadata ?? ""];
  }

  async watermarks({ where: [topic, partition] }) {
    const at = (await this.#admin.fetchTopicOffsets(topic)).find((each) => each.partition === partition);
    return [Number(at.low), Number(at.high)];
  }

  async offset_for_time({ where: [topic, partition], timestamp_ms }) {
    const found = await this.#admin.fetchTopicOffsetsByTimestamp(topic, timestamp_ms);
    return Number(found.find((each) => each.partition === partition).offset);
  }

  close() {
    return within(5_000, Promise.all([this.#consumer.disconnect(), this.#admin.disconnect()]));
  }
}

class Admin {
  #admin;

  static async make(bootstrap) {
    const made = new Admin();
    made.#admin = connection(bootstrap, "ottla-compat").admin();
    await made.#admin.connect();
    return made;
  }

  async create_topic({ name, partitions, replication_factor, configs, validate_only }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
    const topic = { topic: name, numPartitions: partitions, replicationFactor: replication_factor, configEntries };
    const created = await this.#admin.createTopics({
      topics: [topic],
      validateOnly: validate_only,
      waitForLeaders: !validate_only,
    });
    if (!created) {
      throw new Failure("createTopics says false: the topic exists", TOPIC_ALREADY_EXISTS);
    }
  }

  delete_topic({ name }) {
    return this.#admin.deleteTopics({ topics: [name] });
  }

  list_topics() {
    return this.#admin.listTopics();
  }

  async describe_topic({ name }) {
    const { topics } = await this.#admin.fetchTopicMetadata({ topics: [name] });
    return topics[0].partitions.map(({ partitionId, leader }) => [partitionId, leader]);
  }

  async create_partitions({ name, total }) {
    await this.#admin.createPartitions({ topicPartitions: [{ topic: name, count: total }] });
  }

  async describe_configs({ kind, name }) {
    const resource = { type: ConfigResourceTypes[kind.toUpperCase()], name };
    const { resources } = await this.#admin.describeConfigs({ resources: [resource], includeSynonyms: true });
    return Object.fromEntries(
      resources[0].configEntries.map((entry) => [
        entry.configName,
        [
          entry.configValue,
          CONFIG_SOURCES[entry.configSource],
          entry.readOnly,
          entry.isSensitive,
          entry.configSynonyms.map((each) => [each.configName, each.configValue, CONFIG_SOURCES[each.configSource]]),
        ],
      ]),
    );
  }

  async alter_configs({ name, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
    const resources = [{ type: ConfigResourceTypes.TOPIC, name, configEntries }];
    await this.#admin.alterConfigs({ validateOnly: false, resources });
  }

  async list_groups() {
    return (await this.#admin.listGroups()).groups.map(({ groupId }) => groupId);
  }

  async describe_group({ name }) {
    const { groups } = await this.#admin.describeGroups([name]);
    const members = groups[0].members.map(({ memberId, memberAssignment }) => {
      const decoded = memberAssignment.length > 0 ? AssignerProtocol.MemberAssignment.decode(memberAssignment) : null;
      const owned = Object.entries(decoded?.assignment ?? {});
      return [memberId, owned.flatMap(([topic, partitions]) => partitions.map((each) => [topic, each]))];
    });
    return [groups[0].state, Object.fromEntries(members)];
  }

  async delete_group({ name }) {
    await this.#admin.deleteGroups([name]);
  }

  async group_offsets({ name }) {
    const topics = await this.#admin.fetchOffsets({ groupId: name });
    return topics.flatMap(({ topic, partitions }) =>
      partitions.map(({ partition, offset, metadata }) => [topic, partition, Number(offset), metadata ?? ""]),
    );
  }

  /** The client's call has no answer, and works on topics only whose offsets it has been asked for before. */
  async delete_records({ where: [topic, partition], before_offset }) {
    await this.#admin.fetchTopicOffsets(topic);
    await this.#admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before_offset) }] });
    const offsets = await this.#admin.fetchTopicOffsets(topic);
    return Number(offsets.find((each) => each.partition === partition).low);
  }

  async describe_cluster() {
    const { clusterId, controller, brokers } = await this.#admin.describeCluster();
    return [clusterId, controller, brokers.map(({ nodeId, host, port }) => [nodeId, host, port])];
  }

  close() {
    return this.#admin.disconnect();
  }
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
