export { freePort } from './free-port.ts'
export { supervise } from './supervise.ts'
export { tryWorker, type Worker } from './worker.ts'
