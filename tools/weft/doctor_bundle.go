package main

import (
	"errors"
	"fmt"
	"os"

	"weft/internal/doctor"
	"weft/internal/doctor/bundle"
)

// writeBundle writes the file of weft doctor --bundle, for its owner alone. A file that is there is not written over.
func writeBundle(name string, x *doctor.Exam, report doctor.Report) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("the bundle: %w; name a file that is not there", err)
	}
	err = bundle.Write(f, x, report)
	return errors.Join(err, f.Close())
}
