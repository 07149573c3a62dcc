import type { App } from '../app.ts'
import { tellStatus } from './tell.ts'
import type { Template } from './template.ts'

/** What the platform rejects for, when the settings say that it rejects. */
const rejection = 'INVALID_FORMAT'

/** Lets a pending template be reviewed: at once without a callback when there is no delay, never while reviews are held. */
export function review(app: App, template: Template): Template {
  const { review: usual, reviews, review_delay_ms: delayMs } = app.settings.current
  const decision = reviews[template.name] ?? usual
  if (decision === 'hold') return template
  const status = decision === 'approve' ? 'APPROVED' : 'REJECTED'
  const rejectedReason = decision === 'approve' ? 'NONE' : rejection
  if (delayMs === 0) return app.templates.put({ ...template, status, rejectedReason })
  app.schedule.afterAct(delayMs, () => {
    const known = app.templates.find(template.id)
    // It may have been deleted meanwhile, or decided by script.
    if (known?.status === 'PENDING') tellStatus(app, { ...known, status, rejectedReason })
  })
  return template
}
