import type { Send } from '@app/shared/contracts/send.ts'
import type { z } from 'zod'

export type SendBody = z.output<typeof Send>
type TemplateBlock = Extract<SendBody, { type: 'template' }>['template']

type MediaKind = 'image' | 'video' | 'document' | 'audio'

/** A file that a message carries; a message carries one at most. */
interface MediaSlot {
  kind: MediaKind
  media: { link?: string | undefined; id?: string | undefined }
  /** Where it stands in the block. */
  path: (string | number)[]
}

/** A send as it goes to the platform, but for its file. */
export interface Draft {
  /** The type's block, in the platform's words. */
  block: object
  /** What a person reads of it; null for what is not known here (a template's text) and for what has none. */
  content: string | null
  slot: MediaSlot | null
}

export function draftOf(body: SendBody): Draft {
  switch (body.type) {
    case 'text':
      return { block: body.text, content: body.text.body, slot: null }
    case 'image':
      return fileOf('image', body.image)
    case 'video':
      return fileOf('video', body.video)
    case 'document':
      return fileOf('document', body.document)
    case 'audio':
      return fileOf('audio', body.audio)
    case 'reaction':
      return { block: body.reaction, content: body.reaction.emoji, slot: null }
    case 'interactive':
      return interactiveOf(body.interactive)
    case 'template':
      return { block: body.template, content: null, slot: slotOfTemplate(body.template) }
  }
}

const fileOf = (kind: MediaKind, block: MediaSlot['media'] & { caption?: string | undefined }): Draft => ({
  block,
  content: block.caption ?? null,
  slot: { kind, media: block, path: [] },
})

function interactiveOf(interactive: Extract<SendBody, { type: 'interactive' }>['interactive']): Draft {
  const { type, header, body } = interactive
  return {
    block: { ...interactive, type: type === 'reply_buttons' ? 'button' : type },
    content: body.text,
    slot: header && header.type !== 'text' ? slotOfHeader(header) : null,
  }
}

type Header = NonNullable<Extract<SendBody, { type: 'interactive' }>['interactive']['header']>

function slotOfHeader(header: Exclude<Header, { type: 'text' }>): MediaSlot {
  switch (header.type) {
    case 'image':
      return { kind: 'image', media: header.image, path: ['header', 'image'] }
    case 'video':
      return { kind: 'video', media: header.video, path: ['header', 'video'] }
    case 'document':
      return { kind: 'document', media: header.document, path: ['header', 'document'] }
  }
}

function slotOfTemplate({ components = [] }: TemplateBlock): MediaSlot | null {
  for (const [n, { parameters = [] }] of components.entries()) {
    for (const [m, parameter] of parameters.entries()) {
      const { type } = parameter
      if (type !== 'image' && type !== 'video' && type !== 'document') continue
      const media = parameter[type]
      if (media) return { kind: type, media, path: ['components', n, 'parameters', m, type] }
    }
  }
  return null
}

interface MediaId {
  id: string
  /** Of a document that brings none. */
  filename?: string
}

/** The block with another file in its place: a link, or an id of ours, gives way to the id that the platform knows. */
export function withMediaId(block: unknown, path: (string | number)[], file: MediaId): unknown {
  const [key, ...rest] = path
  if (key === undefined) {
    const { link: _, ...media } = block as MediaSlot['media']
    return { ...(file.filename !== undefined && { filename: file.filename }), ...media, id: file.id }
  }
  if (Array.isArray(block)) return block.map((item, n) => (n === key ? withMediaId(item, rest, file) : item))
  const object = block as Record<string, unknown>
  return { ...object, [key]: withMediaId(object[key], rest, file) }
}

/** The name of the slot's field, for faults, such as `template.components[0].parameters[0].image`. */
export const paramOf = (type: string, path: (string | number)[]): string =>
  path.reduce<string>((param, key) => (typeof key === 'number' ? `${param}[${key}]` : `${param}.${key}`), type)
