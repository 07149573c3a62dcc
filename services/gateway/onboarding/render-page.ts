import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const pageFile = (name: string): Buffer => readFileSync(join(import.meta.dirname, 'pages', name))

/** Text from files of ours; what stands in `values` comes from strangers, and is escaped. */
export function renderPage(template: string, values: Record<string, string>): Buffer {
  const page = template.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => escape(values[name] ?? ''))
  return Buffer.from(page)
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

const escape = (text: string) => text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '')
