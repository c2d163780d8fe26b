package main

import (
	"net"
	"sync"
)

// udpConn sends to whoever was heard last, and to a given address before: what pion asks of a server's
// connection.
type udpConn struct {
	*net.UDPConn
	lock sync.Mutex
	to   *net.UDPAddr
}

func (c *udpConn) Read(into []byte) (int, error) {
	n, from, err := c.ReadFromUDP(into)
	if err == nil {
		c.lock.Lock()
		c.to = from
		c.lock.Unlock()
	}
	return n, err
}

func (c *udpConn) Write(bytes []byte) (int, error) {
	c.lock.Lock()
	to := c.to
	c.lock.Unlock()
	return c.WriteToUDP(bytes, to)
}

func (c *udpConn) RemoteAddr() net.Addr {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.to
}
