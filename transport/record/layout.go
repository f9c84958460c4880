package record

/*
#include "record.h"
*/
import "C"

import (
	"unsafe"

	"weft/transport/record/format"
)

// What readers take for the layout is that of record.h, or this does not compile.
var (
	_ = [1]struct{}{}[C.WEFT_RECORD_VERSION-format.Version]
	_ = [1]struct{}{}[C.WEFT_CHUNK_BYTES-format.ChunkBytes]
	_ = [1]struct{}{}[C.WEFT_CHUNK_RECORDS-format.ChunkRecords]
	_ = [1]struct{}{}[C.WEFT_CELL_BYTES-format.CellBytes]
	_ = [1]struct{}{}[C.WEFT_CELL_TEXT-format.CellText]
	_ = [1]struct{}{}[C.WEFT_CELLS-format.Cells]

	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.chunks)-format.OffChunks]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.cells_at)-format.OffCellsAt]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.chunks_at)-format.OffChunksAt]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.pid)-format.OffPID]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.mono)-format.OffMono]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.real)-format.OffReal]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.process)-format.OffProcess]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.boot)-format.OffBoot]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.host)-format.OffHost]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.build)-format.OffBuild]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.turns)-format.OffTurns]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.lost)-format.OffLost]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.refused)-format.OffRefused]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.unnamed)-format.OffUnnamed]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.started)-format.OffStarted]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.pids)-format.OffPIDs]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_record_file{}.alive)-format.OffAlive]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_chunk{}.turn)-format.OffTurn]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_chunk{}.active)-format.OffActive]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_chunk{}.tid)-format.OffTID]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_chunk{}.name)-format.OffName]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_cell{}.text)-format.OffCellText]

	_ = [1]struct{}{}[C.WEFT_RECORD_START-format.Start]
	_ = [1]struct{}{}[C.WEFT_RECORD_MESSAGE_END-format.MessageEnd]
	_ = [1]struct{}{}[C.WEFT_RECORD_SAID-format.Said]
)
