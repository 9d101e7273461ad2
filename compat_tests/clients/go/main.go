// The far end of the driver pipe.py for Go's client libraries, served over stdin and stdout.
//
// The first argument names the library (franz-go, sarama or kafka-go), the last one is the broker's address. A line is a JSON
// object, bytes in it are base64. A call is {"object", "method", "arguments"}; object 0 makes the others, and is told by "secure" how
// they get in. An answer is {"value"}, {"failure", "code"} for what Kafka or its client reported, or {"error"} with a trace for a panic, which is a
// mistake of the driver's. Calls are answered one by one; when stdin ends the process is gone at once, and what is open stays
// open, as after a kill.
//
// With share-reader as its first argument the program is a share consumer of franz-go: see share_reader.go.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
)

var libraries = map[string]func(bootstrap string, secured security) (library, error){
	"franz-go": newFranz,
	"sarama":   newSarama,
	"kafka-go": newKafkaGo,
}

// A call is a line of input.
type call struct {
	Object    int             `json:"object"`
	Method    string          `json:"method"`
	Arguments json.RawMessage `json:"arguments"`
}

// driver holds the objects that calls name by their numbers.
type driver struct {
	library library
	renew   func(secured security) (library, error)
	objects []any
	closed  map[int]bool
}

// make gives the number of a new object.
func (d *driver) make(method string, raw json.RawMessage) (any, error) {
	var made any
	var err error
	switch method {
	case "secure":
		d.library, err = d.renew(decoded[security](raw))
		return nil, err
	case "producer":
		made, err = d.library.producer(decoded[producerSettings](raw))
	case "consumer":
		made, err = d.library.consumer(decoded[consumerSettings](raw))
	case "admin":
		made, err = d.library.admin()
	default:
		panic(method)
	}
	if err != nil {
		return nil, err
	}
	d.objects = append(d.objects, made)
	return len(d.objects) - 1, nil
}

func (d *driver) dispatch(c call) (any, error) {
	if c.Object == 0 {
		return d.make(c.Method, c.Arguments)
	}
	if c.Method == "close" {
		if d.closed[c.Object] {
			return nil, nil
		}
		d.closed[c.Object] = true
	}
	with := decoded[arguments](c.Arguments)
	switch object := d.objects[c.Object].(type) {
	case producer:
		if c.Method == "send_offsets" {
			return nil, object.sendOffsets(with.Offsets, d.objects[with.Group].(consumer))
		}
		return callProducer(object, c.Method, c.Arguments)
	case consumer:
		return callConsumer(object, c.Method, with)
	case admin:
		return callAdmin(object, c.Method, with)
	default:
		panic(fmt.Sprintf("object %d is a %T", c.Object, object))
	}
}

func (d *driver) answer(line []byte) (answer map[string]any) {
	defer func() {
		if mistake := recover(); mistake != nil {
			answer = map[string]any{"error": fmt.Sprintf("%v\n%s", mistake, debug.Stack())}
		}
	}()
	value, err := d.dispatch(decoded[call](line))
	if err != nil {
		return map[string]any{"failure": err.Error(), "code": code(err)}
	}
	return map[string]any{"value": value}
}

// code is Kafka's code of an error that a library reports, -1 when the error is the library's own.
func code(err error) int {
	if known := (*kerr.Error)(nil); errors.As(err, &known) {
		return int(known.Code)
	}
	if known := sarama.KError(0); errors.As(err, &known) {
		return int(known)
	}
	if known := kafka.Error(0); errors.As(err, &known) {
		return int(known)
	}
	return -1
}

func main() {
	if os.Args[1] == "share-reader" {
		serveShareReader(os.Args[2:])
		return
	}
	makeLibrary, known := libraries[os.Args[1]]
	if !known {
		fmt.Fprintf(os.Stderr, "no library is called %s\n", os.Args[1])
		os.Exit(2)
	}
	renew := func(secured security) (library, error) { return makeLibrary(os.Args[len(os.Args)-1], secured) }
	made, err := renew(security{})
	if err != nil {
		panic(err)
	}
	d := driver{library: made, renew: renew, objects: []any{made}, closed: map[int]bool{}}
	calls := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		line, err := calls.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(err)
		}
		if err := answers.Encode(d.answer(line)); err != nil {
			panic(err)
		}
	}
}
