import type { Rpc } from '@app/shared/api/contract.ts'
import { openPage } from '@app/shared/api/page.ts'
import type { Project } from './project.ts'

const limit = 25

/** The cursor that a list would give with a page that ends at the position: what is far down is reached without all that is above. */
export function cursorAt(
  project: Project,
  list: Pick<Rpc, 'subject'>,
  position: string,
  params: Record<string, string> = {},
): string {
  const { page } = openPage(project.cursorKeys(), list, { organizationId: project.stack().organization_id }, {}, params)
  const rows = Array.from({ length: limit + 1 }, () => position)
  const { next_cursor: cursor } = page(
    rows,
    (row) => row,
    (row) => row,
  )
  return cursor ?? ''
}
