export { startMover, type Mover, type MoverOptions } from './start-mover.ts'
