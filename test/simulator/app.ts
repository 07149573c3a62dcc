import type { Callbacks } from './callbacks/callbacks.ts'
import type { Handshake } from './callbacks/handshake.ts'
import type { Schedule } from './callbacks/schedule.ts'
import type { Faults } from './faults.ts'
import type { Held } from './graph/held.ts'
import type { Files } from './media/files.ts'
import type { Media } from './media/media.ts'
import type { History } from './messages/history.ts'
import type { Limits } from './messages/limits.ts'
import type { People } from './messages/people.ts'
import type { DataFile } from './numbers/data-file.ts'
import type { Codes } from './onboarding/codes.ts'
import type { Registrations } from './onboarding/registrations.ts'
import type { Numbers } from './numbers/numbers.ts'
import type { Templates } from './templates/templates.ts'
import type { Feed } from './watch/feed.ts'
import type { Uploads } from './uploads/uploads.ts'
import type { Settings, SettingsStore } from './settings.ts'

export interface SimulatorOptions {
  /** 0, the default: a free port. */
  port?: number
  appId: string
  appSecret: string
  verifyToken: string
  /** Where signed callbacks are posted. */
  callbackUrl: string
  /** Keeps numbers, tokens, windows and what is known of files over restarts; the files stand in a folder beside it. */
  dataFile?: string | undefined
  /** What `DELETE /control/settings` goes back to. */
  settings?: Partial<Settings>
}

/** What every room of the simulator may use. */
export interface App {
  options: SimulatorOptions
  settings: SettingsStore
  numbers: Numbers
  /** The business accounts whose callbacks the app wants. */
  subscriptions: Set<string>
  people: People
  history: History
  limits: Limits
  faults: Faults
  held: Held
  schedule: Schedule
  callbacks: Callbacks
  handshake: Handshake
  dataFile: DataFile
  files: Files
  media: Media
  templates: Templates
  uploads: Uploads
  codes: Codes
  registrations: Registrations
  /** Syncs of the phone's app that were asked for, as `number kind`. */
  syncs: Set<string>
  feed: Feed
  /** Where the simulator listens; links to itself begin with it. */
  url: () => string
}
