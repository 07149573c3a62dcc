/** Keeps this process from everything else for so long, as a long computation does, or who freezes it. */
export function beBusyFor(ms: number): void {
  const endsAt = performance.now() + ms
  while (performance.now() < endsAt);
}
