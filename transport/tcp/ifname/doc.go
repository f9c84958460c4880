// Package ifname chooses the interfaces that carry TCP, as NCCL's sockets do: by NCCL_SOCKET_IFNAME, else by its searches. It looks at
// what it is given and nothing else.
package ifname
