// pion/webrtc behind a pipe: a peer for tests of data channels. It prints an offer as one line of JSON, reads the answer as
// one line of JSON, does what its flags say, and prints a report.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"sync"
	"time"

	"github.com/pion/webrtc/v4"
)

var (
	size   = flag.Int("bytes", 1<<20, "bytes of the file")
	closes = flag.Bool("close", false, "close the channels; otherwise the other end does")
)

// What became of one channel.
type channelReport struct {
	channel    *webrtc.DataChannel
	Label      string  `json:"label"`
	Protocol   string  `json:"protocol"`
	ID         uint16  `json:"id"`
	Ordered    bool    `json:"ordered"`
	Retransmit *uint16 `json:"max_retransmits"`
	Lifetime   *uint16 `json:"max_lifetime"`
	Messages   int     `json:"messages"`
	Bytes      int     `json:"bytes"`
	Texts      int     `json:"texts"`
	Empty      int     `json:"empty"`
	Sha256     string  `json:"sha256"`
	Closed     bool    `json:"closed"`
}

type peer struct {
	lock     sync.Mutex
	changed  *sync.Cond
	channels []*channelReport
	ended    bool
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// follow records what happens on a channel, and sends every message of the file back.
func (p *peer) follow(channel *webrtc.DataChannel, echo bool) *channelReport {
	report := &channelReport{channel: channel, Label: channel.Label(), Protocol: channel.Protocol(), Ordered: channel.Ordered(),
		Retransmit: channel.MaxRetransmits(), Lifetime: channel.MaxPacketLifeTime()}
	hash := sha256.New()
	p.lock.Lock()
	p.channels = append(p.channels, report)
	p.lock.Unlock()
	channel.OnMessage(func(message webrtc.DataChannelMessage) {
		if echo {
			if message.IsString {
				must(channel.SendText(string(message.Data)))
			} else {
				must(channel.Send(message.Data))
			}
		}
		p.lock.Lock()
		defer p.lock.Unlock()
		report.Messages++
		report.Bytes += len(message.Data)
		if message.IsString {
			report.Texts++
		}
		if len(message.Data) == 0 {
			report.Empty++
		}
		hash.Write(message.Data)
		report.Sha256 = hex.EncodeToString(hash.Sum(nil))
		p.changed.Broadcast()
	})
	channel.OnClose(func() {
		p.lock.Lock()
		defer p.lock.Unlock()
		report.Closed = true
		p.changed.Broadcast()
	})
	return report
}

// wait until something holds.
func (p *peer) wait(holds func() bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for !holds() && !p.ended {
		p.changed.Wait()
	}
}

// giveUp says how far the channels are.
func (p *peer) giveUp() {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, report := range p.channels {
		log.Printf("%s: %d messages, %d B, %d B buffered, closed: %v", report.Label, report.Messages, report.Bytes,
			report.channel.BufferedAmount(), report.Closed)
	}
	log.Fatal("not done after 45 s")
}

// sendFile sends bytes that everybody can compute, in messages of 16 KiB, no more at a time than it has to.
func sendFile(channel *webrtc.DataChannel) {
	low := make(chan struct{}, 1)
	channel.SetBufferedAmountLowThreshold(256 << 10)
	channel.OnBufferedAmountLow(func() {
		select {
		case low <- struct{}{}:
		default:
		}
	})
	for at := 0; at < *size; at += 16 << 10 {
		piece := make([]byte, min(16<<10, *size-at))
		for i := range piece {
			piece[i] = byte((at + i) * 31 >> 3)
		}
		must(channel.Send(piece))
		if channel.BufferedAmount() > 512<<10 {
			<-low
		}
	}
}

func main() {
	flag.Parse()
	log.SetFlags(0)
	peer := &peer{}
	time.AfterFunc(45*time.Second, peer.giveUp)
	peer.changed = sync.NewCond(&peer.lock)

	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	settings.SetIPFilter(func(ip net.IP) bool { return ip.IsLoopback() })
	connection, err := webrtc.NewAPI(webrtc.WithSettingEngine(settings)).NewPeerConnection(webrtc.Configuration{})
	must(err)

	// Channels of this end: a file, unordered texts, and messages that are sent once.
	unordered, once, lifetime := false, uint16(0), uint16(500)
	options := map[string]*webrtc.DataChannelInit{
		"file":      nil,
		"unordered": {Ordered: &unordered},
		"once":      {Ordered: &unordered, MaxRetransmits: &once},
		"timed":     {MaxPacketLifeTime: &lifetime},
	}
	own := map[string]*webrtc.DataChannel{}
	reports := map[string]*channelReport{}
	for _, label := range []string{"file", "unordered", "once", "timed"} {
		own[label], err = connection.CreateDataChannel(label, options[label])
		must(err)
		reports[label] = peer.follow(own[label], false)
	}
	connection.OnDataChannel(func(channel *webrtc.DataChannel) { peer.follow(channel, true) })
	connection.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		peer.lock.Lock()
		defer peer.lock.Unlock()
		peer.ended = state == webrtc.PeerConnectionStateFailed || state == webrtc.PeerConnectionStateClosed
		peer.changed.Broadcast()
	})
	// pion refuses to send on a channel that is not open yet.
	opened := make(chan struct{}, len(own))
	for _, channel := range own {
		channel.OnOpen(func() { opened <- struct{}{} })
	}
	negotiate(connection)
	for range own {
		<-opened
	}
	go sendFile(own["file"])
	for number := range 100 {
		must(own["unordered"].SendText(fmt.Sprint("text ", number)))
		must(own["once"].Send([]byte{byte(number)}))
		must(own["timed"].Send(make([]byte, number)))
	}
	// The other end sends the whole file back.
	peer.wait(func() bool { return reports["file"].Bytes == *size && reports["unordered"].Messages == 100 })
	// The other end closes nothing before: pion drops what it has acknowledged and not delivered.
	fmt.Println("received")
	if *closes {
		peer.lock.Lock()
		channels := append([]*channelReport{}, peer.channels...)
		peer.lock.Unlock()
		for _, report := range channels {
			must(report.channel.Close())
		}
	}
	peer.wait(func() bool {
		for _, report := range peer.channels {
			if !report.Closed {
				return false
			}
		}
		return true
	})
	peer.lock.Lock()
	defer peer.lock.Unlock()
	for _, report := range peer.channels {
		if id := report.channel.ID(); id != nil {
			report.ID = *id
		}
	}
	text, err := json.Marshal(peer.channels)
	must(err)
	fmt.Println(string(text))
	// The other end ends the input once its channels are closed as well.
	_, err = io.Copy(io.Discard, os.Stdin)
	must(err)
	must(connection.Close())
}

// negotiate makes an offer and takes the answer.
func negotiate(connection *webrtc.PeerConnection) {
	offer, err := connection.CreateOffer(nil)
	must(err)
	gathered := webrtc.GatheringCompletePromise(connection)
	must(connection.SetLocalDescription(offer))
	<-gathered
	said, err := json.Marshal(connection.LocalDescription().SDP)
	must(err)
	fmt.Println(string(said))
	answer := webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer}
	line, err := bufio.NewReader(os.Stdin).ReadBytes('\n')
	must(err)
	must(json.Unmarshal(line, &answer.SDP))
	must(connection.SetRemoteDescription(answer))
}
