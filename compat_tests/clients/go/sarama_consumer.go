package main

// sarama's partition consumers and its ConsumerGroup.

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

var errSaramaNoMember = errors.New("not a member of the group at the moment")

// A saramaItem is what a partition consumer or a claim has got. Those of a source that was given up don't count any more.
type saramaItem struct {
	source  any
	message *sarama.ConsumerMessage
	err     error
}

type saramaConsumer struct {
	settings consumerSettings
	client   sarama.Client
	admin    saramaAdmin
	items    chan saramaItem
	closed   context.Context
	end      context.CancelFunc
	failed   error // what the next poll reports
	at       positions

	consumer sarama.Consumer
	feeds    map[partition]sarama.PartitionConsumer

	group    sarama.ConsumerGroup
	changing sync.Mutex
	session  sarama.ConsumerGroupSession
}

func (s saramaLibrary) consumer(settings consumerSettings) (consumer, error) {
	config := s.config()
	config.ClientID = settings.ClientID
	config.Net.ReadTimeout = time.Minute
	config.Metadata.RefreshFrequency = time.Second
	config.Consumer.Return.Errors = true
	config.Consumer.MaxWaitTime = milliseconds(settings.FetchMaxWaitMs)
	config.Consumer.Fetch.Min = int32(settings.FetchMinBytes)
	config.Consumer.Fetch.Default = int32(settings.MaxPartitionFetchBytes)
	config.Consumer.Fetch.MaxBytes = int32(settings.FetchMaxBytes)
	config.Consumer.Retry.Backoff = saramaBackoff
	if settings.ReadCommitted {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	if settings.AutoOffsetReset == "latest" {
		config.Consumer.Offsets.Initial = sarama.OffsetNewest
	}
	config.Consumer.Offsets.AutoCommit.Enable = settings.AutoCommit
	config.Consumer.Offsets.AutoCommit.Interval = milliseconds(settings.AutoCommitIntervalMs)
	config.Consumer.Group.ResetInvalidOffsets = settings.AutoOffsetReset != "none"
	config.Consumer.Group.Session.Timeout = milliseconds(settings.SessionTimeoutMs)
	config.Consumer.Group.Heartbeat.Interval = milliseconds(settings.HeartbeatIntervalMs)
	if settings.GroupInstanceID != nil {
		config.Consumer.Group.InstanceId = *settings.GroupInstanceID
	}
	client, err := sarama.NewClient([]string{s.bootstrap}, config)
	if err != nil {
		return nil, err
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, err
	}
	c := &saramaConsumer{
		settings: settings, client: client, admin: saramaAdmin{admin}, items: make(chan saramaItem, 1000),
		at: positions{}, feeds: map[partition]sarama.PartitionConsumer{},
	}
	c.closed, c.end = context.WithCancel(context.Background())
	c.consumer, err = sarama.NewConsumerFromClient(client)
	return c, err
}

func (c *saramaConsumer) assign(starts []start) error {
	for _, each := range starts {
		if each.offset >= 0 {
			c.at[each.partition] = each.offset
		}
		c.feed(each.partition, each.offset)
	}
	return nil
}

// feed begins to read a partition. That it cannot begin there is told by poll.
func (c *saramaConsumer) feed(where partition, offset int64) {
	feed, err := c.consumer.ConsumePartition(where.topic, where.number, offset)
	if err != nil {
		c.failed = err
		return
	}
	c.feeds[where] = feed
	go func() {
		for message := range feed.Messages() {
			c.put(saramaItem{source: feed, message: message})
		}
	}()
	go func() {
		for failed := range feed.Errors() {
			// This one ends the partition consumer; after all others the library goes on trying.
			if errors.Is(failed.Err, sarama.ErrOffsetOutOfRange) {
				c.put(saramaItem{source: feed, err: failed.Err})
			}
		}
	}()
}

func (c *saramaConsumer) put(item saramaItem) {
	select {
	case c.items <- item:
	case <-c.closed.Done():
	}
}

func (c *saramaConsumer) subscribe(topics []string) error {
	group, err := sarama.NewConsumerGroupFromClient(*c.settings.GroupID, c.client)
	if err != nil {
		return err
	}
	c.group = group
	go func() {
		for range group.Errors() { // see feed; that a member is fenced is told by Consume
		}
	}()
	go func() {
		for c.closed.Err() == nil {
			if err := group.Consume(c.closed, topics, c); errors.Is(err, sarama.ErrFencedInstancedId) {
				c.put(saramaItem{source: c.group, err: err})
				c.end()
				return
			} else if err != nil {
				time.Sleep(saramaBackoff)
			}
		}
	}()
	return nil
}

func (c *saramaConsumer) subscribePattern(string) error { panic("sarama subscribes to topics by name") }

func (c *saramaConsumer) current() sarama.ConsumerGroupSession {
	c.changing.Lock()
	defer c.changing.Unlock()
	return c.session
}

func (c *saramaConsumer) become(session sarama.ConsumerGroupSession) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	c.session = session
	return nil
}

// Setup, Cleanup and ConsumeClaim are what sarama calls in the course of a group session.
func (c *saramaConsumer) Setup(session sarama.ConsumerGroupSession) error { return c.become(session) }
func (c *saramaConsumer) Cleanup(sarama.ConsumerGroupSession) error       { return c.become(nil) }

func (c *saramaConsumer) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			select {
			case c.items <- saramaItem{source: session, message: message}:
			case <-session.Context().Done():
				return nil
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (c *saramaConsumer) poll(timeout time.Duration) ([]message, error) {
	var messages []message
	expired := time.After(timeout)
	for c.failed == nil {
		if len(messages) > 0 && len(c.items) == 0 {
			break
		}
		select {
		case item := <-c.items:
			switch {
			case item.err != nil:
				c.failed = item.err
			case c.counts(item):
				messages = append(messages, saramaMessage(item.message))
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

// counts is whether a message comes from what is being read now; with auto commit it is marked for that.
func (c *saramaConsumer) counts(item saramaItem) bool {
	if feed, assigned := c.feeds[partition{item.message.Topic, item.message.Partition}]; assigned {
		return item.source == feed
	}
	session := c.current()
	if session == nil || item.source != session {
		return false
	}
	if c.settings.AutoCommit {
		session.MarkMessage(item.message, "")
	}
	return true
}

func saramaMessage(m *sarama.ConsumerMessage) message {
	got := message{
		partition: partition{m.Topic, m.Partition}, offset: m.Offset, timestampMs: m.Timestamp.UnixMilli(),
		timestampType: unknownTimestampType, key: m.Key, value: m.Value,
	}
	for _, each := range m.Headers {
		got.headers = append(got.headers, header{string(each.Key), each.Value})
	}
	return got
}

func (c *saramaConsumer) seek(where partition, offset int64) error {
	c.feeds[where].AsyncClose()
	for {
		c.feed(where, offset)
		// The partition is still taken until the old one has gone.
		if configuration := sarama.ConfigurationError(""); !errors.As(c.failed, &configuration) {
			break
		}
		c.failed = nil
		time.Sleep(time.Millisecond)
	}
	c.at[where] = offset
	return nil
}

func (c *saramaConsumer) position(where partition) (int64, error) { return c.at.of(where) }

func (c *saramaConsumer) assignment() []partition {
	var owned []partition
	for where := range c.feeds {
		owned = append(owned, where)
	}
	if session := c.current(); session != nil {
		for topic, numbers := range session.Claims() {
			for _, number := range numbers {
				owned = append(owned, partition{topic, number})
			}
		}
	}
	return owned
}

func (c *saramaConsumer) commit(offsets []offset) error {
	if c.group == nil {
		return c.admin.alterGroupOffsets(*c.settings.GroupID, offsets)
	}
	// The library's Commit doesn't tell how it went, and leaves to the next one what has failed.
	deadline := time.Now().Add(saramaTimeout)
	for ; c.closed.Err() == nil && time.Now().Before(deadline); time.Sleep(saramaBackoff / 10) {
		session := c.current()
		if session == nil {
			continue
		}
		for _, each := range offsets {
			// One of them moves forward only, the other one backward only.
			session.ResetOffset(each.topic, each.number, each.offset, each.metadata)
			session.MarkOffset(each.topic, each.number, each.offset, each.metadata)
		}
		session.Commit()
		if done, err := c.hasCommitted(offsets); done || err != nil {
			return err
		}
	}
	return errSaramaNoMember
}

func (c *saramaConsumer) hasCommitted(offsets []offset) (bool, error) {
	for _, each := range offsets {
		at, err := c.committed(each.partition)
		if err != nil || at == nil || *at != each.committed {
			return false, err
		}
	}
	return true, nil
}

func (c *saramaConsumer) committed(where partition) (*committed, error) {
	offsets, err := c.admin.offsetsOf(*c.settings.GroupID, map[string][]int32{where.topic: {where.number}})
	if err != nil || len(offsets) == 0 {
		return nil, err
	}
	return &offsets[0].committed, nil
}

func (c *saramaConsumer) watermarks(where partition) (int64, int64, error) {
	low, err := c.admin.listOffset(where, sarama.OffsetOldest)
	if err != nil {
		return 0, 0, err
	}
	high, err := c.admin.listOffset(where, sarama.OffsetNewest)
	return low, high, err
}

func (c *saramaConsumer) offsetForTime(where partition, timestampMs int64) (*int64, error) {
	found, err := c.admin.listOffset(where, timestampMs)
	if err != nil || found < 0 {
		return nil, err
	}
	return &found, nil
}

func (c *saramaConsumer) close() error {
	var failed error
	if c.group != nil {
		failed = c.group.Close()
	}
	c.end()
	for _, feed := range c.feeds {
		feed.AsyncClose() // which may take as long as the broker holds a fetch
	}
	return errors.Join(failed, c.client.Close())
}
