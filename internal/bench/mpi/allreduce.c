/* allreduce.c: MPI_Allreduce of floats, timed as weft run times its own: the mean of an iteration, averaged over the
 * ranks, after a barrier. Rank 0 prints a line "bytes microseconds" for each size.
 *
 *   allreduce ITERATIONS BYTES... */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM = 5 };

/* Sums of small whole numbers are exact in every order. */
static float mine(int rank, size_t i) { return (float)((size_t)rank + i % 7); }

static void fail(const char* what, long bytes, size_t at) {
	fprintf(stderr, "allreduce of %ld bytes: %s (element %zu)\n", bytes, what, at);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static double timed(long bytes, int iterations, int rank, int ranks) {
	size_t count = (size_t)bytes / sizeof(float);
	float *in = malloc(count * sizeof *in), *out = malloc(count * sizeof *out);
	if (!in || !out) fail("no memory", bytes, 0);
	for (size_t i = 0; i < count; i++) in[i] = mine(rank, i);
	double begin = 0, own, sum = 0;
	for (int i = -WARM; i < iterations; i++) {
		if (!i) {
			MPI_Barrier(MPI_COMM_WORLD);
			begin = MPI_Wtime();
		}
		MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	}
	own = (MPI_Wtime() - begin) * 1e6 / iterations;
	for (size_t i = 0; i < count; i++)
		if (out[i] != (float)ranks * mine(0, i) + (float)(ranks * (ranks - 1) / 2)) fail("a wrong sum", bytes, i);
	MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	free(in);
	free(out);
	return sum / ranks;
}

int main(int argc, char** argv) {
	int rank, ranks, iterations = argc > 2 ? atoi(argv[1]) : 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (iterations < 1) fail("usage: allreduce ITERATIONS BYTES...", 0, 0);
	for (int i = 2; i < argc; i++) {
		long bytes = atol(argv[i]);
		double us = timed(bytes, iterations, rank, ranks);
		if (!rank) printf("%ld %.3f\n", bytes, us);
	}
	MPI_Finalize();
	return 0;
}
