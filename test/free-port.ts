/** For a program that cannot be told to take one itself. */
export { freePort } from '@app/deploy/processes/ports.ts'
