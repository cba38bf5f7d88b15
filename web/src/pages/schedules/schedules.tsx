export function Schedules() {
  return <h1>Schedules</h1>;
}
