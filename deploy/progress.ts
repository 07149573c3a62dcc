export interface Progress {
  /** Does the work and says how long it took. */
  step: <T>(title: string, work: () => Promise<T>) => Promise<T>
  /** Something that is worth a line. */
  say: (line: string) => void
}

/** One line for each step that is done; nothing at all when quiet. */
export function createProgress(quiet: boolean): Progress {
  const say = (line: string) => {
    if (!quiet) console.log(line)
  }
  return {
    say,
    async step(title, work) {
      const startedAt = performance.now()
      const result = await work()
      say(`✓ ${title} (${secondsSince(startedAt)} s)`)
      return result
    },
  }
}

export const secondsSince = (startedAt: number): string => ((performance.now() - startedAt) / 1000).toFixed(1)
