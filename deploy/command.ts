import { Problem } from '@app/shared/api/problem.ts'

/** Runs a command to its end; when it fails, a person reads a sentence, not a stack, and the exit code is 1. */
export async function runCommand(main: () => Promise<void>): Promise<void> {
  try {
    await main()
  } catch (err) {
    console.error(sentenceOf(err))
    process.exitCode = 1
  }
}

/** The same, and the process ends: the client of NATS never lets go of a server that took its connection and said nothing. */
export async function runAndEnd(main: () => Promise<void>): Promise<never> {
  await runCommand(main)
  // Where pipes are not written at once, what was said before is written by then.
  await new Promise<void>((resolve) => void process.stdout.write('', () => resolve()))
  process.exit()
}

export function sentenceOf(err: unknown): string {
  if (!(err instanceof Error)) return String(err)
  // A refused connection to a name with several addresses has no message of its own, only a code.
  const sentence = err.message || ('code' in err ? String(err.code) : err.name)
  // What a client may read says nothing of the reason; the operator may know it.
  return err instanceof Problem && err.cause instanceof Error ? `${sentence} (${sentenceOf(err.cause)})` : sentence
}
