from app.kit.errors import Conflict, NotFound


class DeviceNotFound(NotFound):
    code = "device_not_found"


class MfaNotSetUp(Conflict):
    code = "mfa_not_set_up"


class MfaNotEnabled(Conflict):
    code = "mfa_not_enabled"


class TooManyDevices(Conflict):
    code = "too_many_devices"
