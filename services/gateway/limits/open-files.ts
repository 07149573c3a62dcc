/** The process's own: its connections to servers, its log, the files of its code while they are read. */
const ownFiles = 64

/**
 * As many connections as the process has files for, when each brings a file and so takes one more; `most` where there are enough. Whoever
 * could open more would keep the process from its own work, and everybody else out.
 */
export const connectionsWithin = (openFiles: number, most: number): number =>
  Math.max(1, Math.min(most, Math.floor((openFiles - ownFiles) / 2)))

/** What the system lets this process open at a time (`ulimit -n`); Node has raised it to the hard limit. Infinity where there is none. */
export function openFilesLimit(): number {
  // The names of all peers are not asked for.
  Object.assign(process.report, { excludeNetwork: true })
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files: { soft: number | 'unlimited' } } }
  return Number(userLimits?.open_files.soft) || Infinity
}
