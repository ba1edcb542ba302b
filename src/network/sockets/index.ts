export { end, pipeSockets, type PipeOptions } from './pipe-sockets.ts'
