package link

import "path/filepath"

// startScript takes the entry by which the loader would start Go out of .init_array: package guest calls it when there is room.
const startScript = `SECTIONS
{
  .weft_go : { PROVIDE_HIDDEN(weft_go_entry = .); KEEP(*go.o(.init_array)) }
}
INSERT BEFORE .init_array;
`

// startName is the script's file in the folder of the linker's inputs.
const startName = "start.ld"

// guestFlags let package guest start Go, and stand before its threads, the size of their stacks and calls from C.
func guestFlags(dir string) []string {
	return []string{"-Wl,-T," + filepath.Join(dir, startName), "-Wl,--wrap=pthread_create", "-Wl,--wrap=pthread_attr_init", "-Wl,--wrap=crosscall2"}
}
