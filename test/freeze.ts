/** Keeps this process from everything else for so long, as a long computation does, or who freezes it. */
export function freezeFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
