package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ackStatuses are the words of the command "acknowledge".
var ackStatuses = map[string]kgo.AckStatus{
	"accept":  kgo.AckAccept,
	"release": kgo.AckRelease,
	"reject":  kgo.AckReject,
	"renew":   kgo.AckRenew,
}

// shareReader is a share consumer of franz-go that does what it is told on standard input; ShareReader.java in share_consumers
// has the commands and the arguments. Of the settings it knows max.poll.records and share.acquire.mode.
type shareReader struct {
	client  *kgo.Client
	options []kgo.Opt
	records map[string]*kgo.Record
	results map[string]string
}

func newShareReader(arguments []string) *shareReader {
	r := &shareReader{records: map[string]*kgo.Record{}, results: map[string]string{}}
	// Heartbeats tell a client of its partitions, and a wait in the broker holds up acknowledgements.
	r.options = []kgo.Opt{
		kgo.SeedBrokers(arguments[0]),
		kgo.ShareGroup(arguments[1]),
		kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
			for _, each := range results {
				said := "-"
				if each.Err != nil {
					said = strings.ReplaceAll(each.Err.Error(), " ", "_")
				}
				r.results[fmt.Sprintf("%s %d", each.Topic, each.Partition)] = said
			}
		}),
	}
	for _, setting := range arguments[2:] {
		name, value, _ := strings.Cut(setting, "=")
		switch name {
		case "max.poll.records":
			count, err := strconv.Atoi(value)
			if err != nil {
				panic(err)
			}
			r.options = append(r.options, kgo.ShareMaxRecords(int32(count)))
		case "share.acquire.mode":
			r.options = append(r.options, kgo.ShareMaxRecordsStrict())
		}
	}
	return r
}

func (r *shareReader) run(words []string) error {
	switch words[0] {
	case "subscribe":
		client, err := kgo.NewClient(append(r.options, kgo.ConsumeTopics(words[1]))...)
		r.client = client
		return err
	case "poll":
		milliseconds, err := strconv.Atoi(words[1])
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(milliseconds)*time.Millisecond)
		defer cancel()
		r.client.PollFetches(ctx).EachRecord(func(record *kgo.Record) {
			place := fmt.Sprintf("%s %d %d", record.Topic, record.Partition, record.Offset)
			r.records[place] = record
			fmt.Printf("%s %d %s\n", place, record.DeliveryCount(), record.Value)
		})
	case "acknowledge":
		r.records[strings.Join(words[1:4], " ")].Ack(ackStatuses[words[4]])
	case "commit":
		clear(r.results)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := r.client.FlushAcks(ctx); err != nil {
			return err
		}
		for where, said := range r.results {
			fmt.Println(where, said)
		}
	case "close":
		r.client.Close()
	default:
		return fmt.Errorf("no command is called %s", words[0])
	}
	return nil
}

// serveShareReader runs commands until one of them is "close".
func serveShareReader(arguments []string) {
	r := newShareReader(arguments)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Split(lines.Text(), " ")
		if err := r.run(words); err != nil {
			fmt.Println("failed", err)
		} else {
			fmt.Println("done")
		}
		if words[0] == "close" {
			return
		}
	}
}
