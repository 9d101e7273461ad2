package main

// What every library is asked for: model.py's vocabulary, and how calls and results look in JSON.

import (
	"encoding/json"
	"fmt"
	"time"
)

// library makes the clients of one library, bound to a broker's address.
type library interface {
	producer(settings producerSettings) (producer, error)
	consumer(settings consumerSettings) (consumer, error)
	admin() (admin, error)
}

type producer interface {
	send(r record) error
	flush() ([]delivery, error)
	begin() error
	commit() error
	abort() error
	sendOffsets(offsets []offset, group consumer) error
	close() error
}

type consumer interface {
	assign(starts []start) error
	subscribe(topics []string) error
	subscribePattern(pattern string) error
	poll(timeout time.Duration) ([]message, error)
	seek(where partition, offset int64) error
	position(where partition) (int64, error)
	assignment() []partition
	commit(offsets []offset) error
	committed(where partition) (*committed, error)
	watermarks(where partition) (low, high int64, err error)
	offsetForTime(where partition, timestampMs int64) (*int64, error)
	close() error
}

// serverSide is what a consumer has that can be a member by the consumer protocol, of KIP-848.
type serverSide interface {
	subscribeBrokerPattern(pattern string) error
	rebalances() []rebalance
}

type admin interface {
	createTopic(topic newTopic) error
	deleteTopic(name string) error
	listTopics() ([]string, error)
	describeTopic(name string) (map[int32]int32, error)
	createPartitions(name string, total int) error
	describeConfigs(kind, name string) (map[string]configEntry, error)
	alterConfigs(topic string, configs map[string]string) error
	incrementalAlterConfigs(topic string, changes []configChange) error
	listGroups() ([]string, error)
	describeGroup(name string) (groupDescription, error)
	deleteGroup(name string) error
	groupOffsets(name string) ([]offset, error)
	alterGroupOffsets(name string, offsets []offset) error
	deleteRecords(where partition, before int64) (int64, error)
	listOffset(where partition, spec int64) (int64, error)
	describeCluster() (clusterDescription, error)
	describeLogDirs(topic string) (map[int32]int64, error)
	close() error
}

type producerSettings struct {
	Acks                 int     `json:"acks"`
	Compression          string  `json:"compression"`
	Idempotent           bool    `json:"idempotent"`
	LingerMs             int     `json:"linger_ms"`
	MaxRequestSize       int     `json:"max_request_size"`
	DeliveryTimeoutMs    int     `json:"delivery_timeout_ms"`
	RequestTimeoutMs     int     `json:"request_timeout_ms"`
	TransactionalID      *string `json:"transactional_id"`
	TransactionTimeoutMs int     `json:"transaction_timeout_ms"`
}

type consumerSettings struct {
	GroupID                *string `json:"group_id"`
	GroupInstanceID        *string `json:"group_instance_id"`
	ClientID               string  `json:"client_id"`
	AutoOffsetReset        string  `json:"auto_offset_reset"`
	AutoCommit             bool    `json:"auto_commit"`
	AutoCommitIntervalMs   int     `json:"auto_commit_interval_ms"`
	FetchMaxWaitMs         int     `json:"fetch_max_wait_ms"`
	FetchMinBytes          int     `json:"fetch_min_bytes"`
	FetchMaxBytes          int     `json:"fetch_max_bytes"`
	MaxPartitionFetchBytes int     `json:"max_partition_fetch_bytes"`
	SessionTimeoutMs       int     `json:"session_timeout_ms"`
	HeartbeatIntervalMs    int     `json:"heartbeat_interval_ms"`
	ReadCommitted          bool    `json:"read_committed"`
	GroupProtocol          string  `json:"group_protocol"`
	RemoteAssignor         *string `json:"remote_assignor"`
}

// record is what send takes; a Partition of nil leaves the choice to the library.
type record struct {
	Topic       string   `json:"topic"`
	Value       []byte   `json:"value"`
	Key         []byte   `json:"key"`
	Partition   *int32   `json:"partition"`
	TimestampMs *int64   `json:"timestamp_ms"`
	Headers     []header `json:"headers"`
}

// newTopic is what create_topic takes.
type newTopic struct {
	Name              string            `json:"name"`
	Partitions        int               `json:"partitions"`
	ReplicationFactor int               `json:"replication_factor"`
	Configs           map[string]string `json:"configs"`
	ValidateOnly      bool              `json:"validate_only"`
}

// arguments are those of all other methods; each call has some of them.
type arguments struct {
	newTopic
	Topics       []string       `json:"topics"`
	Pattern      string         `json:"pattern"`
	TimeoutMs    int            `json:"timeout_ms"`
	Starts       []start        `json:"starts"`
	Where        partition      `json:"where"`
	Offset       int64          `json:"offset"`
	Offsets      []offset       `json:"offsets"`
	Group        int            `json:"group"`
	TimestampMs  int64          `json:"timestamp_ms"`
	BeforeOffset int64          `json:"before_offset"`
	Spec         int64          `json:"spec"`
	Total        int            `json:"total"`
	Kind         string         `json:"kind"`
	Changes      []configChange `json:"changes"`
}

type header struct {
	name  string
	value []byte
}

func (h *header) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&h.name, &h.value})
}
func (h header) MarshalJSON() ([]byte, error) { return json.Marshal([]any{h.name, h.value}) }

type partition struct {
	topic  string
	number int32
}

func (p *partition) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&p.topic, &p.number})
}
func (p partition) MarshalJSON() ([]byte, error) { return json.Marshal([]any{p.topic, p.number}) }

// Where to start: at an offset, or at one of these.
const (
	beginning int64 = -2
	end       int64 = -1
)

type start struct {
	partition
	offset int64
}

func (s *start) UnmarshalJSON(text []byte) error {
	var at json.RawMessage
	if err := json.Unmarshal(text, &[]any{&s.topic, &s.number, &at}); err != nil {
		return err
	}
	switch string(at) {
	case `"beginning"`:
		s.offset = beginning
	case `"end"`:
		s.offset = end
	default:
		return json.Unmarshal(at, &s.offset)
	}
	return nil
}

type committed struct {
	offset   int64
	metadata string
}

func (c committed) MarshalJSON() ([]byte, error) { return json.Marshal([]any{c.offset, c.metadata}) }

// offset is the committed position in one partition; without metadata in a transaction.
type offset struct {
	partition
	committed
}

func (o *offset) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&o.topic, &o.number, &o.offset, &o.metadata})
}

func (o offset) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{o.topic, o.number, o.offset, o.metadata})
}

// rebalance tells that partitions came or went; its change is assigned, revoked or lost.
type rebalance struct {
	change     string
	partitions []partition
}

func (r rebalance) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{r.change, some(r.partitions)})
}

type delivery struct {
	partition
	offset int64
}

func (d delivery) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{d.topic, d.number, d.offset})
}

type message struct {
	partition
	offset        int64
	timestampMs   int64
	timestampType int
	key, value    []byte
	headers       []header
}

func (m message) MarshalJSON() ([]byte, error) {
	where := []any{m.topic, m.number, m.offset, m.timestampMs, m.timestampType}
	return json.Marshal([]any{where, [][]byte{m.key, m.value}, some(m.headers)})
}

type synonym struct {
	name   string
	value  *string
	source string
}

func (s synonym) MarshalJSON() ([]byte, error) { return json.Marshal([]any{s.name, s.value, s.source}) }

type configEntry struct {
	value     *string
	source    string
	readOnly  bool
	sensitive bool
	synonyms  []synonym
}

func (c configEntry) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{c.value, c.source, c.readOnly, c.sensitive, some(c.synonyms)})
}

// sources are Kafka's names of where a config comes from, by their numbers on the wire.
var sources = map[int8]string{
	1: "DYNAMIC_TOPIC_CONFIG",
	2: "DYNAMIC_BROKER_CONFIG",
	3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
	4: "STATIC_BROKER_CONFIG",
	5: "DEFAULT_CONFIG",
}

// configChange is one of IncrementalAlterConfigs; its operation is the number on the wire.
type configChange struct {
	operation int8
	name      string
	value     *string
}

var operations = map[string]int8{"set": 0, "delete": 1, "append": 2, "subtract": 3}

func (c *configChange) UnmarshalJSON(text []byte) error {
	var operation string
	err := json.Unmarshal(text, &[]any{&operation, &c.name, &c.value})
	c.operation = operations[operation]
	return err
}

type groupDescription struct {
	state   string
	members map[string][]partition
}

func (g groupDescription) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{g.state, g.members})
}

type node struct {
	id   int32
	host string
	port int32
}

func (n node) MarshalJSON() ([]byte, error) { return json.Marshal([]any{n.id, n.host, n.port}) }

type clusterDescription struct {
	id         *string
	controller int32
	brokers    []node
}

func (c clusterDescription) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{c.id, c.controller, c.brokers})
}

// some makes JSON's [] of what is empty, rather than null.
func some[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// pairs are the entries of a map, for JSON has only text as keys.
func pairs[K comparable, V any](entries map[K]V) [][]any {
	listed := [][]any{}
	for key, value := range entries {
		listed = append(listed, []any{key, value})
	}
	return listed
}

func decoded[T any](text []byte) T {
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		panic(err)
	}
	return value
}

func milliseconds(number int) time.Duration { return time.Duration(number) * time.Millisecond }

// positions are those after what was polled: these libraries leave it to their users to know them.
type positions map[partition]int64

func (p positions) advance(messages []message) {
	for _, each := range messages {
		p[each.partition] = each.offset + 1
	}
}

func (p positions) of(where partition) (int64, error) {
	at, known := p[where]
	if !known {
		return 0, fmt.Errorf("nothing was read from partition %d of %s", where.number, where.topic)
	}
	return at, nil
}

// unknownTimestampType is that of a library that doesn't tell.
const unknownTimestampType = -1
