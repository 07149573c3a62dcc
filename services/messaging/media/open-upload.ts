import type { Handler } from '@app/shared/api/contract.ts'
import type { openUpload as contract } from '@app/shared/contracts/media.ts'
import type { App } from '../app.ts'
import { reserveFile } from './unclaimed-files.ts'

export const openUpload: Handler<App, typeof contract> = async ({ sql }) => ({ file_key: await reserveFile(sql) })
