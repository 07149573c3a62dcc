import type { App } from '../app.ts'
import { readMedia } from '../media/read-media.ts'
import { readNumber } from '../numbers/read-number.ts'
import { editTemplate } from '../templates/edit-template.ts'
import { readTemplate } from '../templates/read-template.ts'
import type { Caller } from './authenticate.ts'
import { unknownObject } from './graph-error.ts'
import type { Param } from './params.ts'

export type Query = Partial<Record<string, string>>

/** Reads a node of one kind; undefined when the id is not of that kind. */
export type NodeReader = (app: App, id: string, caller: Caller, query: Query) => object | undefined

/** Changes a node of one kind; undefined when the id is not of that kind. */
export type NodeWriter = (app: App, id: string, caller: Caller, change: Param) => object | undefined

/** Every kind of node hangs under `GET /{v}/{id}`: each that can be read has its line here. */
const readers: NodeReader[] = [readNumber, readMedia, readTemplate]

export function readNode(app: App, id: string, caller: Caller, query: Query) {
  for (const read of readers) {
    const node = read(app, id, caller, query)
    if (node) return node
  }
  throw unknownObject('get', id)
}

/** And under `POST /{v}/{id}`: each that can be changed. */
const writers: NodeWriter[] = [editTemplate]

export function writeNode(app: App, id: string, caller: Caller, change: Param) {
  for (const write of writers) {
    const answer = write(app, id, caller, change)
    if (answer) return answer
  }
  throw unknownObject('post', id)
}
