// Package manifests holds the manifests of docs/examples against the types of the programs that read them.
package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	mpi "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/validation"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"
)

const examples = "../../docs/examples/"

// Each manifest is one that its controller would take.
func TestManifests(t *testing.T) {
	files, err := filepath.Glob(examples + "kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(text); err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
	}
}

// What is wrong with a manifest is found: each of these words makes it another manifest.
func TestWrongManifests(t *testing.T) {
	for _, c := range []struct{ file, old, new, want string }{
		{"mpijob", "volumeMounts:", "volumeMount:", `unknown field "volumeMount"`},
		{"jobset", "volumeMounts:", "volumeMount:", `unknown field "volumeMount"`},
		{"jobset", "backoffLimit: 0", `backoffLimit: "0"`, "cannot unmarshal string"},
		{"mpijob", "slotsPerWorker: 1", "slotsPerWorker: one", "cannot unmarshal string"},
		{"mpijob", "slotsPerWorker: 1", "slotsPerWorker: 1\n  slotsPerWorker: 2", "already set"},
		{"jobset", "v1alpha2", "v1", "nobody here knows a JobSet of jobset.x-k8s.io/v1"},
		{"mpijob", "Launcher:", "Leader:", "must have Launcher replica spec"},
		{"mpijob", "restartPolicy: Never", "restartPolicy: Always", `Unsupported value: "Always"`},
		{"mpijob", "          containers:", "          restartPolicy: Never\n          containers:", "restartPolicy stands beside the template"},
		{"jobset", "restartPolicy: Never", "restartPolicy: Always", "restartPolicy Always"},
		{"mpijob", "weft-run-worker-0.weft-run", "worker-0", "weft-run-worker-0.weft-run"},
		{"jobset", "name: train", "name: other", "other-node-0-0.other"},
		{"mpijob", "- { name: weft, emptyDir: {} }", "- { name: other, emptyDir: {} }", "a mount of weft, which is no volume"},
		{"jobset", "{ name: shm, mountPath: /dev/shm }", "{ name: weft, mountPath: /dev/shm }", "nothing mounts the volume shm"},
		{"jobset", "mountPath: /dev/shm", "mountPath: /opt/weft", "two mounts at /opt/weft"},
		{"jobset", "{ name: shm, emptyDir", "{ name: weft, emptyDir", "two volumes weft"},
		{"jobset", "name: pytorch\n", "name: weft\n", "two containers weft"},
	} {
		text, err := os.ReadFile(examples + "kubernetes/" + c.file + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), c.old) {
			t.Errorf("%s has no %q", c.file, c.old)
		}
		if err := check([]byte(strings.ReplaceAll(string(text), c.old, c.new))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %q: %v, want %q", c.file, c.new, err, c.want)
		}
	}
}

// check says what is wrong with a manifest: what its type does not have, and what the controller refuses or would silently change.
func check(text []byte) error {
	var kind meta.TypeMeta
	if err := yaml.Unmarshal(text, &kind); err != nil {
		return err
	}
	switch kind.APIVersion + " " + kind.Kind {
	case mpi.SchemeGroupVersion.String() + " MPIJob":
		return checkMPIJob(text)
	case jobset.GroupVersion.String() + " JobSet":
		return checkJobSet(text)
	}
	return fmt.Errorf("nobody here knows a %s of %s", kind.Kind, kind.APIVersion)
}

func checkMPIJob(text []byte) error {
	var job mpi.MPIJob
	if err := yaml.UnmarshalStrict(text, &job); err != nil {
		return err
	}
	mpi.SetDefaults_MPIJob(&job)
	if err := validation.ValidateMPIJob(&job).ToAggregate(); err != nil {
		return err
	}
	for name, replica := range job.Spec.MPIReplicaSpecs {
		pod := &replica.Template.Spec
		if pod.RestartPolicy != "" {
			return fmt.Errorf("%s: restartPolicy stands beside the template: the operator replaces that of the pod", name)
		}
		if err := checkPod(pod); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return named(&job.Spec.MPIReplicaSpecs[mpi.MPIReplicaTypeLauncher].Template.Spec, fmt.Sprintf("%s-worker-0.%[1]s", job.Name))
}

func checkJobSet(text []byte) error {
	var set jobset.JobSet
	if err := yaml.UnmarshalStrict(text, &set); err != nil {
		return err
	}
	for _, job := range set.Spec.ReplicatedJobs {
		pod := &job.Template.Spec.Template.Spec
		if pod.RestartPolicy != core.RestartPolicyNever && pod.RestartPolicy != core.RestartPolicyOnFailure {
			return fmt.Errorf("%s: a Job's pod may not have restartPolicy %s", job.Name, pod.RestartPolicy)
		}
		if err := checkPod(pod); err != nil {
			return fmt.Errorf("%s: %w", job.Name, err)
		}
		if err := named(pod, fmt.Sprintf("%s-%s-0-0.%[1]s", set.Name, job.Name)); err != nil {
			return err
		}
	}
	return nil
}

// named says whether a pod's containers name the host of rank 0 as the controller does.
func named(pod *core.PodSpec, host string) error {
	for _, c := range pod.Containers {
		if strings.Contains(strings.Join(c.Command, " "), host) {
			return nil
		}
	}
	return fmt.Errorf("no container names %s, which is the host of rank 0", host)
}

// checkPod says what the API server would refuse of names and mounts, and which volume is of no use.
func checkPod(pod *core.PodSpec) error {
	var volumes, containers, mounted []string
	for _, v := range pod.Volumes {
		if slices.Contains(volumes, v.Name) {
			return fmt.Errorf("two volumes %s", v.Name)
		}
		volumes = append(volumes, v.Name)
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if slices.Contains(containers, c.Name) {
			return fmt.Errorf("two containers %s", c.Name)
		}
		containers = append(containers, c.Name)
		var paths []string
		for _, m := range c.VolumeMounts {
			if slices.Contains(paths, m.MountPath) {
				return fmt.Errorf("%s: two mounts at %s", c.Name, m.MountPath)
			}
			if !slices.Contains(volumes, m.Name) {
				return fmt.Errorf("%s: a mount of %s, which is no volume of the pod", c.Name, m.Name)
			}
			paths, mounted = append(paths, m.MountPath), append(mounted, m.Name)
		}
	}
	for _, v := range volumes {
		if !slices.Contains(mounted, v) {
			return fmt.Errorf("nothing mounts the volume %s", v)
		}
	}
	return nil
}
