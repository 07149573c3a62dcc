import type { Law } from '../law.ts'

/** The file of a message is served as it was sent. */
export const sameFile: Law = ({ files }) =>
  files
    .filter(({ posted, served }) => posted !== served)
    .map(({ messageId, posted, served }) => `the file of ${messageId} was ${posted} and is ${served ?? 'not served'}`)
