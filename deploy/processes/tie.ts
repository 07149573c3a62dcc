import { runProgram } from './run-program.ts'

let hasTie: boolean | undefined

/**
 * The same command, but Linux sends the program that signal when the process that started it dies, be it by a kill -9.
 * Elsewhere the command as it is: then a next start clears away what is left.
 */
export function tied(command: string, args: readonly string[], signal: string): [string, readonly string[]] {
  // Not every setpriv knows the option: that of util-linux does, that of busybox does not.
  hasTie ??= process.platform === 'linux' && runProgram('setpriv', ['--pdeathsig', 'SIGTERM', 'true']).status === 0
  return hasTie ? ['setpriv', ['--pdeathsig', signal, '--', command, ...args]] : [command, args]
}
