// pion/sctp behind a command line: a peer for tests of interoperation. Its words and its report are those of
// ../usrsctp, as far as it can do what they say.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"sync"
	"time"

	"github.com/pion/logging"
	"github.com/pion/sctp"
)

const ppid = 1000

var (
	server  = flag.Bool("server", false, "wait for an association")
	echo    = flag.Bool("echo", false, "send back what comes")
	bind    = flag.String("bind", "", "our address and UDP port")
	connect = flag.String("connect", "", "the peer's address and UDP port")
	total   = flag.Int("bytes", 0, "bytes to be sent")
	expect  = flag.Int("expect", 0, "bytes to be received before the end")
	length  = flag.Int("message", 1000, "bytes of a message")
	streams = flag.Int("streams", 1, "streams")
	finish  = flag.String("finish", "wait", "shutdown, abort or wait")
	timeout = flag.Duration("timeout", time.Minute, "when the process gives up")
)

type side struct {
	Messages int `json:"messages"`
	Bytes    int `json:"bytes"`
	Wrong    int `json:"wrong"`
}

type event struct {
	Event string `json:"event"`
}

type peer struct {
	lock        sync.Mutex
	changed     *sync.Cond
	association *sctp.Association
	readers     sync.WaitGroup
	done        chan struct{}
	over        bool
	Ended       string  `json:"ended"`
	Sent        side    `json:"sent"`
	Received    side    `json:"received"`
	Events      []event `json:"events"`
}

// read takes the messages of a stream until the association ends.
func (p *peer) read(stream *sctp.Stream) {
	defer p.readers.Done()
	buffer := make([]byte, longest)
	for number := uint32(0); ; number++ {
		n, _, err := stream.ReadSCTP(buffer)
		if err != nil {
			p.end(err)
			return
		}
		good := isMessage(buffer[:n], stream.StreamIdentifier(), number)
		// Counted before it is sent back: who has all back may end the association at once.
		p.lock.Lock()
		p.Received.Messages++
		p.Received.Bytes += n
		if !good {
			p.Received.Wrong++
		}
		p.changed.Broadcast()
		p.lock.Unlock()
		if *echo {
			p.write(stream, buffer[:n])
		}
	}
}

func (p *peer) write(stream *sctp.Stream, bytes []byte) {
	_, err := stream.WriteSCTP(bytes, ppid)
	p.lock.Lock()
	defer p.lock.Unlock()
	if err != nil {
		p.Events = append(p.Events, event{"send failed: " + err.Error()})
		return
	}
	p.Sent.Messages++
	p.Sent.Bytes += len(bytes)
}

func (p *peer) end(err error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if !p.over {
		p.over = true
		p.Ended = "lost"
		// After a SHUTDOWN COMPLETE it closes its own connection.
		if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
			p.Ended = "shutdown"
		}
		p.Events = append(p.Events, event{err.Error()})
	}
	p.changed.Broadcast()
}

// accept reads the streams that the other end begins, and is done when all streams have been read.
func (p *peer) accept() {
	defer close(p.done)
	for {
		stream, err := p.association.AcceptStream()
		if err != nil {
			// Streams know better why.
			p.readers.Wait()
			p.end(err)
			return
		}
		p.readers.Add(1)
		go p.read(stream)
	}
}

func (p *peer) send() {
	open := make([]*sctp.Stream, *streams)
	for i := range open {
		stream, err := p.association.OpenStream(uint16(i), ppid)
		if err != nil {
			log.Fatal(err)
		}
		open[i] = stream
		p.readers.Add(1)
		go p.read(stream)
	}
	for i := 0; i**length < *total; i++ {
		stream := i % *streams
		p.write(open[stream], message(uint16(stream), uint32(i / *streams), *length))
	}
}

func (p *peer) await(done func() bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for !done() {
		p.changed.Wait()
	}
}

func (p *peer) finish(how string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.over = true
	p.Ended = how
}

func (p *peer) conclude() {
	p.await(func() bool { return p.over || p.Received.Bytes >= *expect })
	switch *finish {
	case "shutdown":
		if err := p.association.Shutdown(context.Background()); err != nil {
			p.Events = append(p.Events, event{"shutdown failed: " + err.Error()})
			return
		}
		p.finish("shutdown")
	case "abort":
		// Before the streams tell us ourselves that it is lost.
		p.finish("aborted")
		p.association.Abort("as asked")
	}
	p.await(func() bool { return p.over })
}

func open() *sctp.Association {
	local, err := net.ResolveUDPAddr("udp", *bind)
	if err != nil {
		log.Fatal(err)
	}
	socket, err := net.ListenUDP("udp", local)
	if err != nil {
		log.Fatal(err)
	}
	conn := &udpConn{UDPConn: socket}
	config := sctp.Config{
		NetConn: conn, BlockWrite: true, MaxReceiveBufferSize: 4 << 20, MaxMessageSize: longest,
		LoggerFactory: logging.NewDefaultLoggerFactory(),
	}
	var association *sctp.Association
	if *server {
		fmt.Println("listening")
		association, err = sctp.Server(config)
	} else {
		if conn.to, err = net.ResolveUDPAddr("udp", *connect); err != nil {
			log.Fatal(err)
		}
		fmt.Println("connecting")
		association, err = sctp.Client(config)
	}
	if err != nil {
		log.Fatal(err)
	}
	return association
}

func main() {
	flag.Parse()
	time.AfterFunc(*timeout, func() { log.Fatal("not finished in time") })
	p := &peer{association: open(), done: make(chan struct{}), Events: []event{}}
	p.changed = sync.NewCond(&p.lock)
	go p.accept()
	if *total > 0 {
		p.send()
	}
	p.conclude()
	// A stream may still hold what came before the end.
	<-p.done
	p.lock.Lock()
	report, err := json.Marshal(p)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(report))
	if p.Received.Wrong > 0 {
		os.Exit(1)
	}
}
