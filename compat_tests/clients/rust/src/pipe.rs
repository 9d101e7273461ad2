//! The far end of the driver pipe.py: a Rust client, served over stdin and stdout.
//!
//! A line is a JSON object, bytes in it are base64. A call is {"object", "method", "arguments"}; object 0 makes the others.
//! An answer is {"value"}, or {"failure", "code"} for what Kafka or its client reported. A mistake of the driver's own is a
//! panic. Calls are answered one by one. When stdin ends the process is gone at once, and what is open stays open, as after
//! a kill.

use std::future::Future;
use std::io::{BufRead, Write};
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a tokio runtime"));

/// What a client reported instead of a result; `code` is Kafka's, 0 or less for the client's own failures.
#[derive(Debug)]
pub struct Failure {
    pub text: String,
    pub code: i32,
}

impl Failure {
    pub fn of_client(text: impl ToString) -> Failure {
        Failure { text: text.to_string(), code: 0 }
    }
}

pub type Answer = Result<Value, Failure>;

/// A producer, consumer or admin client with the methods of the model. Closing it is dropping it.
pub trait Role {
    fn call(&mut self, method: &str, arguments: &Value) -> Answer;
}

/// A client library. `Object` is any of its roles.
pub trait Library {
    type Object: Role;

    /// Make a producer, consumer or admin client.
    fn make(&self, role: &str, settings: &Value) -> Result<Self::Object, Failure>;

    /// Commit the offsets in `arguments` with a producer's transaction, for the group of a consumer.
    fn send_offsets(&self, producer: &Self::Object, group: &Self::Object, arguments: &Value) -> Answer;
}

/// Serve a library until stdin ends.
pub fn serve<L: Library>(library: &L) {
    let mut objects: Vec<Option<L::Object>> = vec![None];
    let mut answers = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let call: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let answer = match answered(library, &mut objects, &call) {
            Ok(value) => json!({ "value": value }),
            Err(failure) => json!({ "failure": failure.text, "code": failure.code }),
        };
        writeln!(answers, "{answer}").and_then(|()| answers.flush()).expect("the answers are read");
    }
    std::process::exit(0);
}

fn answered<L: Library>(library: &L, objects: &mut Vec<Option<L::Object>>, call: &Value) -> Answer {
    let (number, method, arguments) = (call["object"].size(), call["method"].text(), &call["arguments"]);
    match method {
        _ if number == 0 => {
            objects.push(Some(library.make(method, arguments)?));
            Ok(json!(objects.len() - 1))
        }
        "close" => {
            objects[number] = None;
            Ok(Value::Null)
        }
        "send_offsets" => library.send_offsets(
            objects[number].as_ref().expect("not closed"),
            objects[arguments["group"].size()].as_ref().expect("not closed"),
            arguments,
        ),
        _ => objects[number].as_mut().expect("not closed").call(method, arguments),
    }
}

/// Wait for what is asynchronous.
pub fn wait<F: Future>(future: F) -> F::Output {
    RUNTIME.block_on(future)
}

/// The runtime, for what goes on between calls.
pub fn runtime() -> &'static Runtime {
    &RUNTIME
}

/// Arguments, whose types are known.
pub trait Argument {
    fn text(&self) -> &str;
    fn number(&self) -> i64;
    fn size(&self) -> usize;
    fn flag(&self) -> bool;
    fn list(&self) -> &[Value];
    /// Bytes, or None for JSON's null.
    fn bytes(&self) -> Option<Vec<u8>>;
    /// [topic, partition, ...], the shape in which partitions come and go.
    fn place(&self) -> (&str, i32);
}

impl Argument for Value {
    fn text(&self) -> &str {
        self.as_str().expect("a string")
    }

    fn number(&self) -> i64 {
        self.as_i64().expect("a number")
    }

    fn size(&self) -> usize {
        self.number().try_into().expect("not negative")
    }

    fn flag(&self) -> bool {
        self.as_bool().expect("true or false")
    }

    fn list(&self) -> &[Value] {
        self.as_array().expect("an array")
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        self.as_str().map(|text| STANDARD.decode(text).expect("base64"))
    }

    fn place(&self) -> (&str, i32) {
        (self[0].text(), self[1].number() as i32)
    }
}

/// Bytes, or null.
pub fn encoded(content: Option<&[u8]>) -> Value {
    content.map_or(Value::Null, |content| json!(STANDARD.encode(content)))
}
