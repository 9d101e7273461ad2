/**
 * The far end of the driver pipe.py: a JavaScript client, served over stdin and stdout.
 *
 * A line is a JSON object, bytes in it are base64. A call is {"object", "method", "arguments"}; object 0 makes the others.
 * An answer is {"value"}, {"failure", "code"} for what Kafka or its client reported, or {"error"} with a trace for
 * anything else. Calls are answered one by one; the clients go on in between. When stdin ends the process is gone at
 * once, and what is open stays open, as after a kill.
 */
import { createInterface } from "node:readline";

/**
 * Serve until stdin ends. `makers` holds an async function for each of producer, consumer and admin, from settings to an
 * object with the model's methods, and a `secure` that is told how these get in; `codeOf` gives Kafka's code of an error (0 for one of the client itself), undefined for
 * an error that isn't the client's.
 */
export async function serve(makers, codeOf) {
  const answers = process.stdout;
  console.log = console.info = console.debug = console.error;
  // A client may fail where nothing waits for it, as when a connection breaks: the next call shows what came of it.
  process.on("unhandledRejection", (error) => console.error(error));
  const objects = [null];
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const answer = await answered(objects, makers, codeOf, JSON.parse(line));
    answers.write(JSON.stringify(answer, (_, value) => (typeof value === "bigint" ? Number(value) : value)) + "\n");
  }
  process.exit(0);
}

async function answered(objects, makers, codeOf, { object, method, arguments: named }) {
  try {
    if (object === 0) {
      if (method === "secure") {
        makers.secure(named);
        return { value: null };
      }
      objects.push(await makers[method](named));
      return { value: objects.length - 1 };
    }
    if (method === "send_offsets") {
      named.group = objects[named.group];
    }
    return { value: (await objects[object][method](named)) ?? null };
  } catch (error) {
    const code = error instanceof Failure ? error.code : codeOf(error);
    return code === undefined ? { error: error.stack } : { failure: String(error), code };
  }
}

/** The options of Node.js for TLS, or undefined; a certificate comes with its key. */
export function tlsOptions({ protocol, ca, certificate }) {
  if (!protocol.endsWith("SSL")) {
    return undefined;
  }
  return { ...(ca && { ca }), ...(certificate && { cert: certificate, key: certificate }) };
}

/** What a client reported without an error of its own. */
export class Failure extends Error {
  constructor(text, code = 0) {
    super(text);
    this.code = code;
  }
}

export const bytes = (text) => (text === null ? null : Buffer.from(text, "base64"));

export const text = (content) => content?.toString("base64") ?? null;

/** Kafka's names of config sources by number, from the numbers by the names that both clients use. */
export function sourceNames({ TOPIC_CONFIG, ...others }) {
  const named = Object.entries({ DYNAMIC_TOPIC_CONFIG: TOPIC_CONFIG, ...others });
  return Object.fromEntries(named.map(([name, number]) => [number, name]));
}

/** Things by a key that `keyOf` makes of each, in the order of their first. */
export function grouped(things, keyOf) {
  const groups = new Map();
  for (const thing of things) {
    const key = keyOf(thing);
    groups.set(key, [...(groups.get(key) ?? []), thing]);
  }
  return groups;
}

/** Resolves like `promise`, or after a while without it. */
export function within(milliseconds, promise) {
  let timer;
  const expired = new Promise((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  return Promise.race([promise, expired]).finally(() => clearTimeout(timer));
}

/**
 * Consumed messages on their way from a client that pushes to a test that polls, and the position in each partition:
 * the offset after the last message polled, or where the test has put it.
 */
export class Inbox {
  #messages = [];
  #positions = new Map();
  #failure;
  #wake = () => {};

  /** One message in the shape of model.Message. */
  put(message) {
    this.#messages.push(message);
    this.#wake();
  }

  /** The consumer has died of this. */
  fail(error) {
    this.#failure = error;
    this.#wake();
  }

  /** Begin a partition elsewhere; without an offset, where the consumer begins by itself. */
  seek(topic, partition, offset) {
    this.#messages = this.#messages.filter(([[ofTopic, of]]) => ofTopic !== topic || of !== partition);
    this.#positions.set(`${topic}:${partition}`, offset);
  }

  position(topic, partition) {
    return this.#positions.get(`${topic}:${partition}`);
  }

  /** What the consumer has died of, if it has. */
  check() {
    if (this.#failure !== undefined) {
      throw this.#failure;
    }
  }

  async poll(timeout) {
    if (this.#messages.length === 0 && this.#failure === undefined) {
      await within(timeout, new Promise((resolve) => (this.#wake = resolve)));
    }
    if (this.#messages.length === 0) {
      this.check();
    }
    const polled = this.#messages;
    this.#messages = [];
    for (const [[topic, partition, offset]] of polled) {
      this.#positions.set(`${topic}:${partition}`, offset + 1);
    }
    return polled;
  }
}
