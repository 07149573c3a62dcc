/** Throws when there is no process: to 0 means to ourselves, and to all that we belong to. */
export function signal(pid: number | null | undefined, name: NodeJS.Signals): void {
  if (!pid) throw new Error(`there is no process to send ${name} to`)
  process.kill(pid, name)
}
