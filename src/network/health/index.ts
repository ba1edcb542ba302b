export { listenForHealth, type HealthServer } from './health-server.ts'
