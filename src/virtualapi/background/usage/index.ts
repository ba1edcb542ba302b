export { UsagePublisher } from './publish-usage.ts'
export { UsageRecorder } from './record-usage.ts'
