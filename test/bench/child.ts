import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

// Floors, peers, generators and receivers each run in a process of their own, and are asked over its channel.

type Command = (input: never) => unknown
type Commands = Record<string, Command>
type InputOf<F> = F extends (input: infer I) => unknown ? I : never
type AnswerOf<F> = F extends (input: never) => infer A ? Awaited<A> : never

interface Question {
  id: number
  name: string
  input: unknown
}

interface Reply {
  id: number
  answer?: unknown
  error?: string
}

export interface Child<C extends Commands> {
  pid: number
  /** Rejects with what the command threw, or when the process ends before it answered. */
  ask: <N extends keyof C & string>(name: N, input: InputOf<C[N]>) => Promise<AnswerOf<C[N]>>
  stop: () => Promise<void>
}

/** Those that run. */
const children = new Set<{ stop: () => Promise<void> }>()

/** Ends those that a measurement which failed has left. */
export const stopChildren = () => Promise.all(Array.from(children, (child) => child.stop()))

/** Starts a program of this folder that answers the given commands (`answerParent`). */
export function startChild<C extends Commands>(file: string): Child<C> {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const waiting = new Map<number, { resolve: (answer: never) => void; reject: (err: Error) => void }>()
  let last = 0
  const ended = new Promise<void>((resolve) => {
    child.once('exit', (code, signal) => {
      for (const { reject } of waiting.values()) reject(new Error(`${file} ended (${signal ?? `exit code ${code}`})`))
      waiting.clear()
      children.delete(started)
      resolve()
    })
  })
  child.on('message', (message) => {
    const { id, answer, error } = message as Reply
    const question = waiting.get(id)
    waiting.delete(id)
    if (error !== undefined) question?.reject(new Error(`${file}: ${error}`))
    else question?.resolve(answer as never)
  })
  const started: Child<C> = {
    pid: child.pid ?? 0,
    ask: (name, input) =>
      new Promise((resolve, reject) => {
        const question: Question = { id: ++last, name, input }
        waiting.set(question.id, { resolve, reject })
        if (child.connected) child.send(question)
        else reject(new Error(`${file} has ended`))
      }),
    async stop() {
      child.kill('SIGTERM')
      const force = setTimeout(() => child.kill('SIGKILL'), 5_000)
      await ended
      clearTimeout(force)
    },
  }
  children.add(started)
  return started
}

/** In the started program: answers the parent's commands, and ends with it. */
export function answerParent(commands: Commands): void {
  process.on('disconnect', () => process.exit())
  process.on('message', (message) => {
    const { id, name, input } = message as Question
    void (async () => {
      const command = commands[name]
      if (!command) throw new Error(`there is no command ${name}`)
      return command(input as never)
    })().then(
      (answer) => process.send?.({ id, answer } satisfies Reply),
      (err: unknown) => process.send?.({ id, error: err instanceof Error ? (err.stack ?? err.message) : String(err) }),
    )
  })
}
