package main

// kafka-go's Reader, one to a partition, and its ConsumerGroup, which says what partitions these are.

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// A kafkaGoItem is what a Reader has got. Those of one that was given up don't count any more.
type kafkaGoItem struct {
	reader  *kafka.Reader
	message kafka.Message
	err     error
}

type kafkaGoConsumer struct {
	library  kafkaGoLibrary
	settings consumerSettings
	admin    kafkaGoAdmin
	items    chan kafkaGoItem
	failed   error // what the next poll reports
	at       positions
	closed   context.Context
	end      context.CancelFunc
	group    *kafka.ConsumerGroup

	changing   sync.Mutex
	readers    map[partition]*kafka.Reader
	generation *kafka.Generation
	committing *kafka.Reader // the one Reader of a member that commits by itself
}

func (k kafkaGoLibrary) consumer(settings consumerSettings) (consumer, error) {
	c := &kafkaGoConsumer{
		library: k, settings: settings, admin: kafkaGoAdmin{k.client(settings.ClientID)},
		items: make(chan kafkaGoItem, 1000), at: positions{}, readers: map[partition]*kafka.Reader{},
	}
	c.closed, c.end = context.WithCancel(context.Background())
	return c, nil
}

func (c *kafkaGoConsumer) config() kafka.ReaderConfig {
	config := kafka.ReaderConfig{
		Brokers:               []string{c.library.bootstrap},
		Dialer:                c.dialer(),
		MinBytes:              c.settings.FetchMinBytes,
		MaxBytes:              max(c.settings.MaxPartitionFetchBytes, c.settings.FetchMinBytes),
		MaxWait:               max(milliseconds(c.settings.FetchMaxWaitMs), kafkaGoPatience),
		ReadBackoffMin:        time.Millisecond,
		ReadBackoffMax:        kafkaGoBackoff,
		OffsetOutOfRangeError: c.settings.AutoOffsetReset == "none",
	}
	if c.settings.ReadCommitted {
		config.IsolationLevel = kafka.ReadCommitted
	}
	return config
}

func (c *kafkaGoConsumer) dialer() *kafka.Dialer {
	return &kafka.Dialer{
		ClientID: c.settings.ClientID, Timeout: kafkaGoTimeout, DualStack: true,
		TLS: c.library.encrypted, SASLMechanism: c.library.mechanism,
	}
}

func (c *kafkaGoConsumer) startOffset() int64 {
	if c.settings.AutoOffsetReset == "latest" {
		return kafka.LastOffset
	}
	return kafka.FirstOffset
}

func (c *kafkaGoConsumer) assign(starts []start) error {
	for _, each := range starts {
		if each.offset >= 0 {
			c.at[each.partition] = each.offset
		}
		c.read(c.closed, each.partition, each.offset)
	}
	return nil
}

// read begins to read a partition, until the context ends. Its numbers for the beginning and the end are the library's too.
func (c *kafkaGoConsumer) read(ctx context.Context, where partition, offset int64) {
	config := c.config()
	config.Topic, config.Partition = where.topic, int(where.number)
	reader := kafka.NewReader(config)
	if err := reader.SetOffset(offset); err != nil {
		c.failed = err
		return
	}
	c.changing.Lock()
	c.readers[where] = reader
	c.changing.Unlock()
	go c.forward(ctx, reader, reader.FetchMessage)
}

// forward passes on what a Reader gets. After most errors the Reader goes on trying.
func (c *kafkaGoConsumer) forward(
	ctx context.Context, reader *kafka.Reader, get func(context.Context) (kafka.Message, error),
) {
	defer reader.Close()
	for ctx.Err() == nil {
		m, err := get(ctx)
		if err != nil && !errors.Is(err, kafka.OffsetOutOfRange) {
			continue
		}
		select {
		case c.items <- kafkaGoItem{reader, m, err}:
		case <-ctx.Done():
		}
		if err != nil {
			return
		}
	}
}

func (c *kafkaGoConsumer) subscribe(topics []string) error {
	if c.settings.AutoCommit {
		config := c.config()
		config.GroupID, config.GroupTopics = *c.settings.GroupID, topics
		config.StartOffset = c.startOffset()
		config.HeartbeatInterval = milliseconds(c.settings.HeartbeatIntervalMs)
		config.SessionTimeout = milliseconds(c.settings.SessionTimeoutMs)
		config.CommitInterval = milliseconds(c.settings.AutoCommitIntervalMs)
		c.committing = kafka.NewReader(config)
		go c.forward(c.closed, c.committing, c.committing.ReadMessage)
		return nil
	}
	var err error
	c.group, err = kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                     *c.settings.GroupID,
		Brokers:                []string{c.library.bootstrap},
		Dialer:                 c.dialer(),
		Topics:                 topics,
		HeartbeatInterval:      milliseconds(c.settings.HeartbeatIntervalMs),
		SessionTimeout:         milliseconds(c.settings.SessionTimeoutMs),
		JoinGroupBackoff:       kafkaGoBackoff,
		WatchPartitionChanges:  true,
		PartitionWatchInterval: time.Second,
		StartOffset:            c.startOffset(),
	})
	if err != nil {
		return err
	}
	go func() {
		for {
			generation, err := c.group.Next(c.closed)
			if errors.Is(err, kafka.ErrGroupClosed) || c.closed.Err() != nil {
				return
			}
			if err == nil {
				c.begin(generation)
			}
		}
	}()
	return nil
}

func (c *kafkaGoConsumer) subscribePattern(string) error {
	panic("kafka-go subscribes to topics by name")
}

// begin reads what a generation of the group has assigned to this member, until the generation ends.
func (c *kafkaGoConsumer) begin(generation *kafka.Generation) {
	c.changing.Lock()
	c.generation, c.readers = generation, map[partition]*kafka.Reader{}
	c.changing.Unlock()
	generation.Start(func(ctx context.Context) {
		for topic, assigned := range generation.Assignments {
			for _, each := range assigned {
				c.read(ctx, partition{topic, int32(each.ID)}, each.Offset)
			}
		}
		<-ctx.Done()
		c.changing.Lock()
		defer c.changing.Unlock()
		c.generation, c.readers = nil, map[partition]*kafka.Reader{}
	})
}

func (c *kafkaGoConsumer) poll(timeout time.Duration) ([]message, error) {
	var messages []message
	expired := time.After(timeout)
	for c.failed == nil {
		if len(messages) > 0 && len(c.items) == 0 {
			break
		}
		select {
		case item := <-c.items:
			switch {
			case !c.counts(item):
			case item.err != nil:
				c.failed = item.err
			default:
				messages = append(messages, kafkaGoMessage(item.message))
			}
			continue
		case <-expired:
		}
		break
	}
	c.at.advance(messages)
	if len(messages) > 0 || c.failed == nil {
		return messages, nil
	}
	failed := c.failed
	c.failed = nil
	return nil, failed
}

func (c *kafkaGoConsumer) counts(item kafkaGoItem) bool {
	if item.err != nil || item.reader == c.committing {
		return true
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	return c.readers[partition{item.message.Topic, int32(item.message.Partition)}] == item.reader
}

func kafkaGoMessage(m kafka.Message) message {
	got := message{
		partition: partition{m.Topic, int32(m.Partition)}, offset: m.Offset, timestampMs: m.Time.UnixMilli(),
		timestampType: unknownTimestampType, key: m.Key, value: m.Value,
	}
	for _, each := range m.Headers {
		got.headers = append(got.headers, header{each.Key, each.Value})
	}
	return got
}

// seek begins with a new Reader: SetOffset would leave open which messages come from before it.
func (c *kafkaGoConsumer) seek(where partition, offset int64) error {
	c.changing.Lock()
	old := c.readers[where]
	c.changing.Unlock()
	c.read(c.closed, where, offset)
	c.at[where] = offset
	return old.Close()
}

func (c *kafkaGoConsumer) position(where partition) (int64, error) { return c.at.of(where) }

func (c *kafkaGoConsumer) assignment() []partition {
	c.changing.Lock()
	defer c.changing.Unlock()
	var owned []partition
	for where := range c.readers {
		owned = append(owned, where)
	}
	return owned
}

func (c *kafkaGoConsumer) commit(offsets []offset) error {
	if c.group == nil {
		return c.admin.alterGroupOffsets(*c.settings.GroupID, offsets)
	}
	c.changing.Lock()
	generation := c.generation
	c.changing.Unlock()
	if generation == nil {
		return errors.New("not a member of the group at the moment")
	}
	request := &kafka.OffsetCommitRequest{
		GroupID: generation.GroupID, GenerationID: int(generation.ID), MemberID: generation.MemberID,
	}
	// The library's own commits are tried as often; a Client leaves that to its user.
	err := c.admin.commit(request, offsets)
	for attempt := 1; err != nil && code(err) < 0 && attempt < kafkaGoAttempts; attempt++ {
		time.Sleep(kafkaGoBackoff)
		err = c.admin.commit(request, offsets)
	}
	return err
}

func (c *kafkaGoConsumer) committed(where partition) (*committed, error) {
	offsets, err := c.admin.offsetsOf(*c.settings.GroupID, map[string][]int{where.topic: {int(where.number)}})
	if err != nil || len(offsets) == 0 {
		return nil, err
	}
	return &offsets[0].committed, nil
}

func (c *kafkaGoConsumer) watermarks(where partition) (int64, int64, error) {
	low, err := c.admin.listOffset(where, kafka.FirstOffset)
	if err != nil {
		return 0, 0, err
	}
	high, err := c.admin.listOffset(where, kafka.LastOffset)
	return low, high, err
}

func (c *kafkaGoConsumer) offsetForTime(where partition, timestampMs int64) (*int64, error) {
	found, err := c.admin.listOffset(where, timestampMs)
	if err != nil || found < 0 {
		return nil, err
	}
	return &found, nil
}

func (c *kafkaGoConsumer) close() error {
	var failed error
	if c.group != nil {
		failed = c.group.Close()
	}
	if c.committing != nil {
		failed = errors.Join(failed, c.committing.Close())
	}
	c.end()
	return failed
}
