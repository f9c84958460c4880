// Package mapped makes the files in which a process leaves what others read of it:
// mapped into memory, so that they are whole at any moment and after the process was
// killed, and with a first page that tells whose they are (see record/format).
package mapped
